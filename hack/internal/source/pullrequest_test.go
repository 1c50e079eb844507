package source

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/series"
)

func TestExportWritesThePullRequestOfEachPatch(t *testing.T) {
	w := newWorldWithPatches(t)
	w.editPatch("0002-api-add-a-field.patch", "api: add a field\n\n", "api: add a field\n\nWhy it is.\n\n"+
		"KEP-3721: https://kep.k8s.io/3721\nDesign: https://example.com/design\nKind: api-change\nRelease-Note: Pods have\na field.\nUpstream: not yet sent.\n\n")
	out := filepath.Join(w.layout.Root, "export")
	_, err := w.assembly(Options{}).exportTree(context.Background(), out, false)
	w.ok(err)
	body := w.read("export/0002-api-add-a-field.md")
	for _, want := range []string{
		"/kind feature\n/kind api-change\n", "\n\nWhy it is.\n\n", "KEP: https://github.com/kubernetes/enhancements/issues/3721\n", "It needs no other patch",
		"It adds 1 lines, and 0 of tests. Upstream: not yet sent.\n", "```release-note\nPods have a field.\n```", "```docs\n- [KEP]: https://kep.k8s.io/3721\n- [Other doc]: https://example.com/design\n```",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is not in\n%s", want, body)
		}
	}
	if body := w.read("export/0001-kubelet-change-step-10.md"); !strings.Contains(body, "For a test.") || !strings.Contains(body, "```release-note\nNONE\n```") || !strings.Contains(body, "\n\nN/A\n") {
		t.Errorf("without trailers the body is\n%s", body)
	}
	if page := w.read("export/0000-cover-letter.md"); !strings.Contains(page, "# 2 patches for Kubernetes v1.33.13\n") || !strings.Contains(page, "| 0002 | api: add a field | 1 | 0 |  | Upstream: not yet sent. |\n") {
		t.Errorf("the cover page is\n%s", page)
	}
}

// withTrailers is newWorldWithPatches with trailers in the message of the second patch.
func withTrailers(t *testing.T) *world {
	t.Helper()
	w := newWorldWithPatches(t)
	w.editPatch("0002-api-add-a-field.patch", "api: add a field\n\n", "api: add a field\n\nWhy it is.\n\n"+
		"KEP-3721: https://kep.k8s.io/3721\nKEP-4369: https://kep.k8s.io/4369\nDesign: https://example.com/design\nDocument: a book\nKind: api-change\n"+
		"Release-Note: Pods have\na field.\nFixes-Spec: a spec\nNeeds: nothing.\nUpstream: not yet sent. Drop it when\nit is there.\nReported-by: Ada\n\n")
	return w
}

func TestExportedCommitsHaveNoTrailersOfPodenv(t *testing.T) {
	w := withTrailers(t)
	files, err := w.assembly(Options{}).exportTree(t.Context(), filepath.Join(w.layout.Root, "export"), false)
	w.ok(err)
	patch := w.read("export/0002-api-add-a-field.patch")
	want := "\n\nWhy it is.\n\nKEP-3721: https://kep.k8s.io/3721\nKEP-4369: https://kep.k8s.io/4369\nDesign: https://example.com/design\nDocument: a book\nReported-by: Ada\n\ndiff --git "
	if !strings.Contains(patch, want) {
		t.Errorf("the message does not end in %q:\n%s", want, patch)
	}
	// git am takes them, and gives the tree.
	dir := filepath.Join(t.TempDir(), "kubernetes")
	w.git("clone", "--quiet", w.dir(), dir)
	w.inTree(dir, "checkout", "--quiet", w.git("rev-list", "--max-parents=0", "HEAD"))
	w.inTree(dir, append([]string{"am", "--quiet"}, files...)...)
	if got, want := w.inTree(dir, "rev-parse", "HEAD^{tree}"), w.inTree(w.dir(), "rev-parse", "HEAD^{tree}"); !slices.Equal(got, want) {
		t.Errorf("git am gives the tree %s, not %s", got, want)
	}
}

func TestDependenciesAreFilesAndNames(t *testing.T) {
	patches := []series.Patch{
		{Added: map[string]string{"pkg/a/types.go": "type Thing struct {\n\tFileKeyRef *Ref\n\tPath string\n"}},
		{Added: map[string]string{"pkg/b/b.go": "func helper() {}\nfunc Helper() {}\nfunc Twice() {}\n// a.Thing\n"}},
		{Added: map[string]string{"pkg/c/c.go": "x.FileKeyRef = nil\n"}},
		{Added: map[string]string{"pkg/b/c.go": "helper()\nfunc Twice() {}\n"}},
		{Added: map[string]string{"pkg/d/d.go": "helper(); x.Path = b.Other; b.Twice()\n"}},
		{Added: map[string]string{"pkg/c/c.go": "b.Helper()\n", "pkg/c/README.md": "Thing"}},
		{Added: map[string]string{"pkg/c/e.go": "\treturn a.Thing{}\n", "pkg/c/c.go": "y\n"}},
		{Added: map[string]string{"pkg/d/e.go": "return core.EnvVarSource{FileKeyRef: nil}\n"}},
	}
	want := [][]int{nil, nil, {0}, {1}, nil, {1, 2}, {5}, {0}}
	if diff := cmp.Diff(want, dependencies(patches)); diff != "" {
		t.Errorf("dependencies (-want +got):\n%s", diff)
	}
}

func TestAFixNeedsAllBeforeItIfItSaysSo(t *testing.T) {
	patches := []series.Patch{{}, {}, {Trailers: []string{"Needs: 0001 to 0002"}}, {}}
	if diff := cmp.Diff([][]int{nil, nil, {0, 1}, nil}, needsOfFixes(patches)); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
}
