package gate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/jsonout"
)

const listed = `
- name: Graduated
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.29"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.33"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.36"}
- name: Later
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.34"}
- name: Middle
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.32"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.33"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.34"}
`

func TestReadTakesWhatIsInForceInTheMinor(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, lists[0])
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(listed), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := read(dir, "v1.33", "      Middle=true|false (BETA - default=true)\n      OfHelp=true|false (ALPHA - default=false)\n      AllAlpha=true|false (ALPHA - default=false)\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Gate{
		{Name: "Graduated", Stage: "GA", Default: true, Locked: true, Since: "v1.29"},
		{Name: "Middle", Stage: "BETA", Default: true, Since: "v1.32"},
		{Name: "OfHelp", Stage: "ALPHA"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := os.WriteFile(file, []byte("- name: A\n  versionedSpecs: [{version: newest}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir, "v1.33", ""); err == nil || !strings.Contains(err.Error(), "A") {
		t.Errorf("no error for a version that is none: %v", err)
	}
}

func TestOthersAreOff(t *testing.T) {
	w := Walk{Gate: Gate{Name: "A"}, Needs: []string{"Needed"}}
	got := w.Others([]Gate{{Name: "A"}, {Name: "Needed"}, {Name: "On", Default: true}, {Name: "AB"}})
	if !slices.Equal(got, []string{`\[FeatureGate:AB\]`}) {
		t.Errorf("got %q", got)
	}
}

func TestCountSpecsSaysWhatIsLacking(t *testing.T) {
	gates := []Gate{{Name: "Middle"}, {Name: "None"}, {Name: "Two"}}
	countSpecs(gates, `    a.go:1: [sig-node] a [FeatureGate:Middle] [Beta] runs
    a.go:2: [sig-node] b [FeatureGate:Middle] [FeatureGate:Two] runs
    a.go:3: [sig-storage] CSI Mock c [FeatureGate:Middle] needs
    a.go:4: [sig-storage] [Feature:Windows] [Driver: csi-hostpath] d [FeatureGate:Middle] needs
    a.go:5: [sig-storage] [Driver: pd.csi.storage.gke.io] e [FeatureGate:Two] needs
    a.go:8: [sig-autoscaling] [Feature:HPA] h [FeatureGate:Middle] needs
    a.go:9: [sig-node] [DRA] [FeatureGate:Two] device compatibility groups i needs
    a.go:6: [sig-node] f runs without a gate
    a.go:7: [sig-node] g [FeatureGate:Elsewhere] is of another release
`)
	want := []Gate{
		{Name: "Middle", Specs: 5, CanRun: 2, Needs: map[string]int{"metrics-server": 1, "the images of a CSI driver": 1, "a Windows node": 1}},
		{Name: "None"},
		{Name: "Two", Specs: 3, CanRun: 1, Needs: map[string]int{"a cloud": 1, "the image of a DRA driver": 1}},
	}
	if diff := cmp.Diff(want, gates); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFieldsOfAGate(t *testing.T) {
	var out strings.Builder
	gates := []Gate{
		{Name: "A", Stage: "BETA", Default: true, Locked: true, Since: "v1.30", Components: []string{"kubelet", "kube-proxy"}, Specs: 3, CanRun: 1, Needs: map[string]int{"b": 1, "a": 1}},
		{Name: "B", Stage: "ALPHA"},
	}
	if err := jsonout.WriteTSV(&out, gates, Gate.Fields); err != nil {
		t.Fatal(err)
	}
	want := "A\tBETA\ttrue\tyes\tv1.30\t3\t1\ta: 1, b: 1\tkubelet,kube-proxy\nB\tALPHA\tfalse\tno\t-\t0\t0\t-\t-\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if columns := strings.Split(Columns, "\t"); len(columns) != len(gates[0].Fields()) {
		t.Errorf("columns %q", columns)
	}
	var table strings.Builder
	if err := jsonout.WriteTable(&table, Columns, gates, Gate.Fields); err != nil || !slices.Equal(strings.Fields(strings.Split(table.String(), "\n")[2]), []string{"B", "ALPHA", "false", "no", "-", "0", "0", "-", "-"}) {
		t.Errorf("%v\n%s", err, table.String())
	}
}
