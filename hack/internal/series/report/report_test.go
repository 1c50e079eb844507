package report

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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

// asComponent is the variable that makes the test binary a component, and the text that it prints.
const asComponent = "PODENV_TEST_COMPONENT"

func TestMain(m *testing.M) {
	if text := os.Getenv(asComponent); text != "" {
		beComponent(text)
		return
	}
	os.Exit(m.Run())
}

// beComponent prints text for --help, and otherwise serves it as metrics.
func beComponent(text string) {
	port := ""
	for _, arg := range os.Args[1:] {
		if arg == "--help" {
			fmt.Println(text)
			return
		}
		if p, ok := strings.CutPrefix(arg, "--secure-port="); ok {
			port = p
		}
	}
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // for its certificate
	server := http.Server{
		Addr:      "127.0.0.1:" + port,
		TLSConfig: &tls.Config{Certificates: s.TLS.Certificates},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				fmt.Fprintln(w, text)
			}
		}),
	}
	fmt.Println(server.ListenAndServeTLS("", ""))
	os.Exit(1)
}

// truth is the output of components that agree with featuregates/.
func truth(t *testing.T) (metrics, help string) {
	t.Helper()
	states, err := featuregates.In("v1.33")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		on := 0
		if s.Spec.Default {
			on = 1
		}
		metrics += fmt.Sprintf("kubernetes_feature_enabled{name=\"%s\",stage=\"%s\"} %d\n", s.Name, s.Spec.PreRelease, on)
		help += fmt.Sprintf("   kube:%s=true|false (%s - default=%t)\n", s.Name, s.Spec.PreRelease, s.Spec.Default)
	}
	return metrics, help
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

// component builds a component that outputs text.
func (w *world) component(name, text string) {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	w.write("_output/build/v1.33/bin/"+name, fmt.Sprintf("#!/bin/sh\nexport %s='%s'\nexec '%s' \"$@\"\n", asComponent, text, self), 0o755)
}

// build builds all components that Of runs.
func (w *world) build(metrics, help string) {
	w.Helper()
	w.component(metricsComponent, metrics)
	w.component("kubelet", help)
	w.component("kube-apiserver", help)
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
	metrics, help := truth(t)
	const metric, line = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 0`, "EnvFiles=true|false (ALPHA - default=false)"
	for name, tc := range map[string]struct {
		metrics, help string
		want          string // of the gate EnvFiles
	}{
		"as featuregates/ says": {metrics, help, ""},
		"the default is another": {
			strings.Replace(metrics, metric, `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1`, 1), help,
			"featuregates/ says ALPHA, default false",
		},
		"the stage is another": {
			strings.Replace(metrics, metric, `kubernetes_feature_enabled{name="EnvFiles",stage="BETA"} 0`, 1), help,
			"featuregates/ says ALPHA, default false",
		},
		"the gate is unknown": {
			strings.Replace(metrics, metric, "", 1), help,
			"kube-controller-manager does not know it: if the build is older than the patches, podenv build --series v1.33",
		},
		"a component of its own mind": {
			metrics, strings.Replace(help, line, "EnvFiles=true|false (ALPHA - default=true)", 1),
			"kube-apiserver --help says ALPHA - default=true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.build(tc.metrics, tc.help)
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

func TestAComponentThatDoesNotServeIsAnError(t *testing.T) {
	w := newWorld(t)
	w.build(truth(t))
	w.write("_output/build/v1.33/bin/"+metricsComponent, "#!/bin/sh\necho 'unknown flag'; exit 1\n", 0o755)
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
	const patch = "From: a\n\nwhy\n\nNew-File: pkg/a.go\nNew-File: pkg/b.go\n\n"
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
