package source

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/series"
)

// newTektonWorld has a series of Tekton without patches, and a package of our own for Kubernetes.
func newTektonWorld(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t)
	w.write("pkg/pod/x/ofkubernetes.go", "package x\n")
	s, err := Pin(t.Context(), w.layout, "tekton-v1.10", "v1.10.0", nil)
	w.ok(err)
	tree, err := Assemble(t.Context(), w.layout, s, Options{}, nil)
	w.ok(err)
	w.series = s
	return w, tree.Dir
}

func (w *world) inTree(dir string, args ...string) []string {
	w.Helper()
	out, err := gitrepo.Repo{Dir: dir}.Lines(w.Context(), append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.com"}, args...)...)
	w.ok(err)
	return out
}

func TestATreeOfTektonIsTheModuleAlone(t *testing.T) {
	w, dir := newTektonWorld(t)
	want := []string{"Tekton Pipelines v1.10.0"}
	if diff := cmp.Diff(want, w.inTree(dir, "log", "--format=%s")); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"go.mod", "pkg/pod/pod.go"}, w.inTree(dir, "ls-files")); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestASeriesOfTektonMakesTheRoundTrip takes commits to patches and back, and to a newer minor.
func TestASeriesOfTektonMakesTheRoundTrip(t *testing.T) {
	w, dir := newTektonWorld(t)
	for name, text := range map[string]string{
		"pkg/pod/pod.go":     "package pod\n\n// Release is the release.\nconst Release = \"v1.10.0\"\n\n// Env is the environment.\nconst Env = 2\n",
		"pkg/pod/merge.go":   "package pod\n",
		"pkg/pod/x/merge.go": "package x\n",
	} {
		path := filepath.Join(dir, name)
		w.ok(os.MkdirAll(filepath.Dir(path), 0o755))
		w.ok(os.WriteFile(path, []byte(text), 0o644))
	}
	w.inTree(dir, "add", "--all")
	w.inTree(dir, "commit", "--quiet", "--message=pod: merge env by name")
	before := w.inTree(dir, "rev-parse", "HEAD^{tree}")
	written, err := WritePatches(t.Context(), w.layout, w.series, nil)
	w.ok(err)
	want := []string{"patches/tekton/new/pkg/pod/merge.go", "patches/tekton/new/pkg/pod/x/merge.go", "patches/tekton/v1.10/0001-pod-merge-env-by-name.patch"}
	if diff := cmp.Diff(want, written.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if err := series.CheckNewFiles(w.layout); err == nil || err.Error() != `no patch of any series adds pkg/pod/x/ofkubernetes.go: delete it, or name it with a line "New-File: pkg/pod/x/ofkubernetes.go" in the message of a patch` {
		t.Errorf("of a file that no series of Kubernetes adds: %v", err)
	}
	w.ok(os.RemoveAll(dir))
	_, err = Assemble(t.Context(), w.layout, w.series, Options{}, nil)
	w.ok(err)
	if diff := cmp.Diff(before, w.inTree(dir, "rev-parse", "HEAD^{tree}")); diff != "" {
		t.Errorf("the tree that the patches give differs:\n%s", diff)
	}
	to, err := Pin(t.Context(), w.layout, "tekton-v1.11", "v1.11.0", nil)
	w.ok(err)
	done, _, err := Rebase(t.Context(), w.layout, w.series, to, false, nil)
	w.ok(err)
	if diff := cmp.Diff([]Rebased{{Title: "pod: merge env by name", How: RebasedMerged}}, done); diff != "" {
		t.Errorf("rebase (-want +got):\n%s", diff)
	}
	exported, err := Export(t.Context(), w.layout, to, filepath.Join(t.TempDir(), "export"), false, nil)
	w.ok(err)
	if len(exported) != 1 {
		t.Errorf("exported %q", exported)
	}
}
