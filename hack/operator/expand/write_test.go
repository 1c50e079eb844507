package expand

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var written = []Pod{{Kind: "Pod", Namespace: "shop", Name: "app", Containers: []Container{{
	Name: "main", Type: "container",
	Env: []Variable{
		{Name: "URL", Source: "value", Text: Text{Value: "http://$(HSOT)/<b>", Findings: []Finding{{Type: Unexpanded, Name: "HSOT", Why: Misspelt, Nearest: "HOST", Text: "$(HSOT) stays"}}}},
		{Name: "PASSWORD", Source: "Secret db, key password", Text: Text{Value: "***"}},
	},
	Args:     []Text{{Value: "two\nlines"}, {Value: ""}, {Value: " x"}},
	Findings: []Finding{{Type: Unset, Text: "A is not set"}},
}}}}

func TestTheTableShowsEachFindingBelowWhatItIsAbout(t *testing.T) {
	const want = `Pod shop/app, container main
  env
    URL       http://$(HSOT)/<b>
      ! $(HSOT) stays
    PASSWORD  ***  (Secret db, key password)
  - A is not set
  args
    "two\nlines"
    ""
    " x"

unexpanded: 1, unknown: 0, cannot start: 0
`
	var got strings.Builder
	if err := WriteTable(&got, written); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestJSONHasEverything(t *testing.T) {
	var text strings.Builder
	if err := WriteJSON(&text, written); err != nil {
		t.Fatal(err)
	}
	var got []Pod
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(written, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if !strings.Contains(text.String(), `"value": "http://$(HSOT)/<b>"`) {
		t.Errorf("escaped for HTML: %s", &text)
	}
}

func TestCountLooksEverywhere(t *testing.T) {
	if unexpanded, unset := Count(written, Unexpanded), Count(written, Unset); unexpanded != 1 || unset != 1 {
		t.Errorf("got %d and %d", unexpanded, unset)
	}
}
