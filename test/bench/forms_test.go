package bench

import (
	"os"
	"strings"
	"testing"

	upstream "k8s.io/kubernetes/pkg/kubelet/util/env"

	"podenv.dev/pkg/kubelet/envfile"
)

// bothForms is an env file with the same values in the form of v1.34 and in that of v1.35.
// test/upstream/v1.34 reads it with the parser of upstream's v1.34.
const bothForms = "../corpus/both-forms.env"

func TestAFileForBothFormsHasTheSameValuesInBoth(t *testing.T) {
	data, err := os.ReadFile(bothForms)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"HOST": "db.example.com", "PORT": "5432"}
	for name, syntax := range map[string]envfile.Syntax{".env": envfile.DotEnv, "single quotes": envfile.SingleQuoted} {
		values, err := envfile.Parse(data, []string{"HOST", "PORT"}, envfile.Options{Syntax: syntax})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for key, want := range want {
			if got, err := values.Lookup(key); err != nil || got != want {
				t.Errorf("%s: %s is %q (%v), want %q", name, key, got, err, want)
			}
		}
	}
	for key, want := range want {
		if got, err := upstream.ParseEnv(bothForms, key); err != nil || got != want {
			t.Errorf("upstream: %s is %q (%v), want %q", key, got, err, want)
		}
	}
}

func TestTheDocsShowTheFileForBothForms(t *testing.T) {
	data, err := os.ReadFile(bothForms)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/env-file-forms.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```\n"+string(data)+"```\n") {
		t.Errorf("docs/env-file-forms.md does not show %s as it is", bothForms)
	}
}
