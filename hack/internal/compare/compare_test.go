package compare

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/junit"
)

const (
	prefix = "[sig-node] EnvFiles [Feature:EnvFiles] [FeatureGate:EnvFiles] "
	fifo   = prefix + "attacks: a FIFO [Serial]"
	event  = prefix + "an event about [\"$(A)\"] or a|b"
)

var (
	stock = []junit.Case{
		{Name: fifo, Failure: &junit.Message{Message: "A spec timeout\noccurred"}},
		{Name: event, Skipped: &junit.Message{Message: "skipped - no gate"}},
		{Name: prefix + "story", Seconds: 500},
		{Name: prefix + "last", Error: &junit.Message{Message: "panic"}},
	}
	patched = []junit.Case{
		{Name: prefix + "story", Seconds: 70},
		{Name: fifo, Seconds: 5},
		{Name: event},
		{Name: prefix + "not reached"},
		{Name: prefix + "last", Seconds: 300, Failure: &junit.Message{Message: "no"}},
	}
)

func TestRowsJoinTheResultsByName(t *testing.T) {
	want := []Row{
		{Suite: "envfiles", Spec: `EnvFiles an event about ["$(A)"] or a|b`, Stock: Skipped, Patched: Passed, Why: "skipped - no gate"},
		{Suite: "envfiles", Spec: "EnvFiles attacks: a FIFO", Stock: Failed, Patched: Passed, Why: "A spec timeout occurred"},
		{Suite: "envfiles", Spec: "EnvFiles last", Stock: Failed, Patched: Failed, Why: "panic"},
		{Suite: "envfiles", Spec: "EnvFiles not reached", Stock: NotRun, Patched: Passed},
		{Suite: "envfiles", Spec: "EnvFiles story", Stock: Passed, Patched: Passed},
	}
	rows := Rows("envfiles", stock, patched)
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got\n%q\nwant\n%q", rows, want)
	}
	if failed := FailedPatched(rows); !slices.Equal(failed, []string{"envfiles: EnvFiles last"}) {
		t.Errorf("failed with the patches: %q", failed)
	}
}

func TestOnlySpecsThatFailWithoutThePatchesAndPassWithThemAreInTheTable(t *testing.T) {
	rows := append(Rows("envfiles", stock, patched), Row{Suite: "relaxed", Spec: "a|b", Stock: Failed, Patched: Passed})
	var out strings.Builder
	if err := WriteMarkdown("v1.34.10", 0)(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `With the patches 5 specs pass on v1.34.10. Without them 1 of these pass, 2 fail, 1 are skipped because
the release lacks what they need, and 1 did not run. Those that fail:

| suite | spec |
|---|---|
| envfiles | EnvFiles attacks: a FIFO |
| relaxed | a\|b |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTSVHasEverySpec(t *testing.T) {
	var out strings.Builder
	if err := WriteTSV(&out, Rows("envfiles", stock, patched)[1:3]); err != nil {
		t.Fatal(err)
	}
	want := "envfiles\tEnvFiles attacks: a FIFO\tfailed\tpassed\nenvfiles\tEnvFiles last\tfailed\tfailed\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLimitFollowsTheSlowestSpecThatPassed(t *testing.T) {
	if got, want := Limit(patched), 140*time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := Limit(nil), time.Minute; got != want {
		t.Errorf("without specs: got %s, want %s", got, want)
	}
}

func TestWithFixesEachSpecNamesThoseThatItNeeds(t *testing.T) {
	rows := Rows("envfiles", patched, nil)
	Name(rows, map[string][]string{"0002": {"story", "last"}, "0001": {"last"}, "0003": {"a FIFO", "none"}}, []string{"0001", "0002"})
	var out strings.Builder
	if err := WriteMarkdown("v1.37.2", 2)(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `On v1.37.2 with 2 fixes 4 specs pass, 1 fail and 0 are skipped.

| suite | spec | result | needs | of it missing |
|---|---|---|---|---|
| envfiles | EnvFiles last | failed | 0001 0002 |  |
| envfiles | EnvFiles story | passed | 0002 |  |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if failed := FailedPatched(rows); !slices.Equal(failed, []string{"envfiles: EnvFiles last"}) {
		t.Errorf("failed with all fixes that they need: %q", failed)
	}
	Name(rows, map[string][]string{"0004": {"last"}}, nil)
	if failed := FailedPatched(rows); failed != nil {
		t.Errorf("a spec that needs another fix too: %q", failed)
	}
}
