package source

import (
	"slices"
	"testing"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/series"
)

func TestATreeKnowsItsReleaseAndWhatDiffersFromIt(t *testing.T) {
	w := newWorldWithPatches(t)
	tree, err := w.open()
	w.ok(err)
	root := w.git("rev-list", "--max-parents=0", "HEAD")
	commit, date, err := tree.Release(t.Context())
	if err != nil || commit != root || date.Format("2006-01-02") != "2026-06-11" {
		t.Errorf("the release is %s of %v, %v; want %s", commit, date, err, root)
	}
	patched := []string{"pkg/kubelet/envfile/envfile.go", "pkg/kubelet/kubelet.go", fakeTypes, fakeGenerated}
	if got, err := tree.Changed(t.Context()); err != nil || !slices.Equal(got, patched) {
		t.Errorf("changed are %q, %v", got, err)
	}
	if got, err := (gitrepo.Repo{Dir: tree.Dir}).ChangedIn(t.Context(), "HEAD^"); err != nil || !slices.Equal(got, []string{fakeTypes}) {
		t.Errorf("the patch of the API changes %q, %v", got, err)
	}
	w.edit("pkg/apis/core/validation/a_test.go", "", "package validation\n")
	w.edit("docs/windows.txt", "two", "2")
	w.git("rm", "--quiet", "hack/update.sh")
	edited := slices.Sorted(slices.Values(append([]string{"docs/windows.txt", "hack/update.sh", "pkg/apis/core/validation/a_test.go"}, patched...)))
	if got, err := tree.Changed(t.Context()); err != nil || !slices.Equal(got, edited) {
		t.Errorf("with edits changed are %q, %v; want %q", got, err, edited)
	}
}

func TestATreeWithTwoFirstCommitsHasNoRelease(t *testing.T) {
	w := newWorldWithPatches(t)
	tree, err := w.open()
	w.ok(err)
	other := w.git("commit-tree", "-m", "another history", "HEAD^{tree}")
	w.git("merge", "--quiet", "--allow-unrelated-histories", "--strategy=ours", other)
	if commit, _, err := tree.Release(t.Context()); err == nil {
		t.Errorf("it is %s", commit)
	}
}

func TestPackagesAreThoseWhoseTestsAreAboutTheFiles(t *testing.T) {
	got := (&Tree{}).Packages([]string{
		"pkg/kubelet/kubelet.go", "pkg/kubelet/kubelet_test.go", "staging/src/k8s.io/api/core/v1/types.go",
		"staging/src/k8s.io/api/testdata/HEAD/core.v1.Pod.json", "pkg/kubelet/testdata/a.go", "docs/windows.txt",
	})
	want := []string{"k8s.io/api", "k8s.io/api/core/v1", "k8s.io/kubernetes/pkg/kubelet"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	ofTekton := &Tree{Series: series.Series{Name: "tekton-v1.10"}}
	if got := ofTekton.Packages([]string{"pkg/pod/pod.go"}); !slices.Equal(got, []string{"github.com/tektoncd/pipeline/pkg/pod"}) {
		t.Errorf("of Tekton: %q", got)
	}
}
