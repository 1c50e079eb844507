package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

// truth is the --help of components that agree with featuregates/.
func truth(t *testing.T) (help string) {
	t.Helper()
	states, err := featuregates.In("v1.33")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		help += fmt.Sprintf("   kube:%s=true|false (%s - default=%t)\n", s.Name, s.Spec.PreRelease, s.Spec.Default)
	}
	return help
}

// world is a repository with one series.
type world struct {
	testing.TB
	layout layout.Layout
}

func newWorld(t testing.TB) *world {
	w := &world{t, layout.Layout{Root: t.TempDir()}}
	w.write("patches/v1.33/go.mod", "module podenv.dev/patches/v1.33\n\nrequire (\n\tk8s.io/api v0.33.13\n\tk8s.io/kubernetes v1.33.13\n)\n", 0o644)
	return w
}

func (w *world) write(name, text string, mode os.FileMode) {
	w.Helper()
	path := filepath.Join(w.layout.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		w.Fatal(err)
	}
}

// component builds a component that prints help for --help, and knows the gates in it and those
// that are GA.
func (w *world) component(name, help string, ga ...string) {
	w.Helper()
	w.write("_output/build/v1.33/bin/"+name, fmt.Sprintf(`#!/bin/sh
help='%s'
[ "$1" != --help ] || { echo "$help"; exit; }
for gate in $(echo "${1#--feature-gates=}" | tr , ' '); do
	case "$help %s" in *"${gate%%=*}"*) ;; *) echo "unrecognized feature gate: ${gate%%=*}"; exit 1 ;; esac
done
`, help, strings.Join(ga, " ")), 0o755)
}

func (w *world) report() (Report, error) {
	w.Helper()
	s, err := series.Load(w.layout, "v1.33")
	if err != nil {
		w.Fatal(err)
	}
	return Of(w.Context(), w.layout, s)
}

func TestBuiltBinariesTellTheirGates(t *testing.T) {
	help := truth(t)
	const line = "EnvFiles=true|false (ALPHA - default=false)"
	edited := func(to string) string { return strings.Replace(help, line, to, 1) }
	for name, tc := range map[string]struct {
		apiServer, kubelet string
		ga                 string
		want               string // of the gate EnvFiles
	}{
		"as featuregates/ says":  {help, help, "", ""},
		"the default is another": {edited("EnvFiles=true|false (ALPHA - default=true)"), help, "", "kube-apiserver --help says ALPHA - default=true"},
		"the stage is another":   {edited("EnvFiles=true|false (BETA - default=false)"), help, "", "kube-apiserver --help says BETA - default=false"},
		"the gate is GA":         {edited(""), help, "EnvFiles", "kube-apiserver --help says nothing of it, as of a gate that is GA"},
		"the gate is unknown": {
			edited(""), help, "",
			"kube-apiserver does not know it: if the build is older than the patches, podenv build --series v1.33",
		},
		"the second component is another": {help, edited("EnvFiles=true|false (ALPHA - default=true)"), "", "kubelet --help says ALPHA - default=true"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.component("kube-apiserver", tc.apiServer, tc.ga)
			w.component("kubelet", tc.kubelet)
			r, err := w.report()
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(r.Gates, func(g Gate) bool { return g.Name == "EnvFiles" })
			if !r.Built || at < 0 {
				t.Fatalf("the report is %+v", r)
			}
			if got := r.Gates[at].Wrong; got != tc.want {
				t.Errorf("wrong is %q, want %q", got, tc.want)
			}
			if got := Disagree([]Report{r}); got != (tc.want != "") {
				t.Errorf("disagree: %t", got)
			}
		})
	}
}

func TestAComponentThatDoesNotStartIsAnError(t *testing.T) {
	w := newWorld(t)
	w.component("kubelet", truth(t))
	w.write("_output/build/v1.33/bin/kube-apiserver", "#!/bin/sh\necho 'unknown flag'; exit 1\n", 0o755)
	_, err := w.report()
	if err == nil || !strings.Contains(err.Error(), "unknown flag") {
		t.Errorf("the error is %v", err)
	}
}

func TestASeriesThatIsNotBuiltSaysSo(t *testing.T) {
	w := newWorld(t)
	w.component("kubelet", "no others are there")
	r, err := w.report()
	if err != nil {
		t.Fatal(err)
	}
	if r.Built || len(r.Gates) == 0 || Disagree([]Report{r}) {
		t.Errorf("the report is %+v", r)
	}
	var b bytes.Buffer
	if err := WriteTable(&b, []Report{r}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "not built") != 1 || !strings.Contains(text, "those of featuregates/: v1.33 (podenv build --series v1.33)\n") {
		t.Errorf("the table is\n%s", b.String())
	}
}

func TestNewFilesAreCountedWithTheFormsOfTheSeries(t *testing.T) {
	w := newWorld(t)
	const patch = "From: A <a@example.com>\n\nwhy\n\nNew-File: pkg/a.go\nNew-File: pkg/b.go\n\n"
	w.write("patches/v1.33/0001-one.patch", patch, 0o644)
	w.write("patches/new/pkg/a.go", "package a\n", 0o644)
	w.write("patches/new/pkg/b.go", "package b\n", 0o644)
	w.write("patches/v1.33/new/pkg/b.go", "package b\n\n// v1.33\n", 0o644)
	r, err := w.report()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(NewFiles{Files: 2, Lines: 4, Own: []string{"pkg/b.go"}}, r.NewFiles); diff != "" || r.PatchLines != 7 {
		t.Errorf("%d lines of patches; new files (-want +got):\n%s", r.PatchLines, diff)
	}
}

func TestPatchesAreWrittenWithTheirFates(t *testing.T) {
	patches := []series.Patch{{Series: "v1.33", File: "0001-a.patch", Title: "a: b", Lines: 2, TestLines: 3, Fate: "Drop: when it is there"}}
	var table, tsv bytes.Buffer
	if err := errors.Join(WritePatchesTable(&table, patches), WritePatchesTSV(&tsv, patches)); err != nil {
		t.Fatal(err)
	}
	const wantTable = "SERIES  NUMBER  LINES  OF TESTS  PATCH  FATE\nv1.33   0001    2      3         a: b   Drop: when it is there\n"
	if diff := cmp.Diff(wantTable, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if want := "v1.33\t0001-a.patch\t2\t3\ta: b\tDrop: when it is there\n"; tsv.String() != want {
		t.Errorf("TSV %q", tsv.String())
	}
}

func TestTouchedCountsOnlyLinesOfExistingFiles(t *testing.T) {
	w := newWorld(t)
	w.write("patches/v1.33/0001-one.patch", `diff --git a/old.go b/old.go
--- a/old.go
+++ b/old.go
@@ -1,2 +1,3 @@
 package old
-var a int
+var b int
+var c int
diff --git a/new.go b/new.go
new file mode 100644
--- /dev/null
+++ b/new.go
@@ -0,0 +1,1 @@
+package new
`, 0o644)
	w.write("patches/v1.33/0002-two.patch", `diff --git a/new.go b/new.go
--- a/new.go
+++ b/new.go
@@ -1,1 +1,2 @@
 package new
+var d int
`, 0o644)
	r, err := w.report()
	if err != nil {
		t.Fatal(err)
	}
	if want := (Touched{Files: 1, Added: 2, Removed: 1}); r.Touched != want || r.Patches != 2 {
		t.Errorf("%d patches touch %+v, want %+v", r.Patches, r.Touched, want)
	}
}

func TestFormatsSayTheSame(t *testing.T) {
	reports := []Report{{
		Series: "v1.33", Release: "v1.33.13", Patches: 2, PatchLines: 30, Touched: Touched{Files: 1, Added: 2, Removed: 1}, Built: true,
		NewFiles: NewFiles{Files: 3, Lines: 40, Own: []string{"pkg/a.go"}},
		Replaced: []string{"k8s.io/kms v0.34.0"},
		Gates:    []Gate{{Name: "EnvFiles", Stage: "ALPHA"}, {Name: "Other", Default: true, Wrong: "featuregates/ says BETA, default true"}},
	}}
	var table, tsv, asJSON bytes.Buffer
	for _, err := range []error{WriteTable(&table, reports), WriteTSV(&tsv, reports), jsonout.WriteList(&asJSON, reports)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const wantTable = `SERIES  RELEASE   PATCHES      LINES IN EXISTING FILES  NEW FILES           GATE      STAGE  DEFAULT  REMARK
v1.33   v1.33.13  2, 30 lines  3 in 1 files             3, 40 lines, 1 own  EnvFiles  ALPHA  false    
                                                                            Other     GA     true     WRONG: featuregates/ says BETA, default true
v1.33 has its own form of pkg/a.go
v1.33 has another release's k8s.io/kms v0.34.0
`
	if diff := cmp.Diff(wantTable, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	const wantTSV = "v1.33\tv1.33.13\t2\t1\t2\t1\tEnvFiles\tALPHA\tfalse\t\t30\t3\t40\t1\n" +
		"v1.33\tv1.33.13\t2\t1\t2\t1\tOther\tGA\ttrue\tWRONG: featuregates/ says BETA, default true\t30\t3\t40\t1\n"
	if diff := cmp.Diff(wantTSV, tsv.String()); diff != "" {
		t.Errorf("TSV (-want +got):\n%s", diff)
	}
	var back []Report
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reports, back); diff != "" {
		t.Errorf("JSON does not come back as it was (-want +got):\n%s", diff)
	}
}
