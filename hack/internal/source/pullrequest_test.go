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

const kubernetesBody = `#### What type of PR is this?

/kind feature
/kind api-change

#### What this PR does / why we need it:

Why it is.

#### Which issue(s) this PR is related to:

KEP: https://github.com/kubernetes/enhancements/issues/3721
KEP: https://github.com/kubernetes/enhancements/issues/4369

#### Special notes for your reviewer:

These changes come first:

- nothing.

Lines added: 1, and 0 of tests. Generated code is not counted.

#### Does this PR introduce a user-facing change?

~~~release-note
Pods have a field.
~~~

#### Additional documentation e.g., KEPs (Kubernetes Enhancement Proposals), usage docs, etc.:

~~~docs
- [KEP]: https://kep.k8s.io/3721
- [KEP]: https://kep.k8s.io/4369
- [Other doc]: https://example.com/design
~~~
`

const tektonBody = `# Changes

Why it is.

These changes come first:

- pod: a

Documents:

- TEP-0101: https://example.com/0101
- KEP-3721: https://kep.k8s.io/3721

/kind bug

# Submitter Checklist

- [ ] Has documentation, if users see the change
- [x] Has tests
- [ ] pre-commit passed
- [ ] Follows the standards of commit messages and contributors
- [x] Has a kind label
- [x] The release note says what users see
- [x] It contains "action required" if users have to act

# Release Notes

~~~release-note
Runs start.
~~~
`

// withTrailers is newWorldWithPatches with trailers in the message of the second patch, and a third
// that changes the file of the first.
func withTrailers(t *testing.T) *world {
	t.Helper()
	w := newWorldWithPatches(t)
	w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
	w.commit("kubelet: change step 20")
	w.mustWritePatches()
	w.editPatch("0002-api-add-a-field.patch", "api: add a field\n\n", "api: add a field\n\nWhy it is.\n\n"+
		"KEP-3721: https://kep.k8s.io/3721\nKEP-4369: https://kep.k8s.io/4369\nDesign: https://example.com/design\nDocument: a book\nKind: api-change\n"+
		"Release-Note: Pods have\na field.\nFixes-Spec: a spec\nNeeds: nothing.\nUpstream: not yet sent. Drop it when\nit is there.\nReported-by: Ada\n\n")
	return w
}

func TestExportWritesThePullRequestOfEachPatch(t *testing.T) {
	w := withTrailers(t)
	out := filepath.Join(w.layout.Root, "export")
	_, err := w.assembly(Options{}).exportTree(context.Background(), out, false)
	w.ok(err)
	if diff := cmp.Diff(strings.ReplaceAll(kubernetesBody, "~~~", "```"), w.read("export/0002-api-add-a-field.md")); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if body := w.read("export/0001-kubelet-change-step-10.md"); !strings.Contains(body, "For a test.") || !strings.Contains(body, "```release-note\nNONE\n```") || !strings.Contains(body, "\n\nN/A\n\n") || !strings.Contains(body, "\n\n/kind feature\n\n") || !strings.HasSuffix(body, "```docs\n```\n") {
		t.Errorf("without trailers the body is\n%s", body)
	}
	if body := w.read("export/0003-kubelet-change-step-20.md"); !strings.Contains(body, "\n\nThese changes come first:\n\n- kubelet: change step 10\n\nLines") {
		t.Errorf("of a patch that needs the first one the body is\n%s", body)
	}
	if page := w.read("export/0000-cover-letter.md"); !strings.Contains(page, "# 3 patches for Kubernetes v1.33.13\n") || !strings.Contains(page, "| 0002 | api: add a field | 1 | 0 | nothing. | Upstream: not yet sent. Drop it when it is there. |\n") {
		t.Errorf("the cover page is\n%s", page)
	}
}

func TestAPullRequestOfTektonHasItsTemplate(t *testing.T) {
	body, err := pullRequest("Tekton Pipelines", series.Patch{
		Body: "Why it is.", TestLines: 1, Fate: "Upstream: not yet sent.",
		Trailers: []string{"TEP-0101: https://example.com/0101", "KEP-3721: https://kep.k8s.io/3721", "Kind: bug", "Release-Note: Runs start."},
	}, []string{"pod: a"})
	if diff := cmp.Diff(strings.ReplaceAll(tektonBody, "~~~", "```"), string(body)); err != nil || diff != "" {
		t.Errorf("%v, body (-want +got):\n%s", err, diff)
	}
	if body, err := pullRequest("Tekton Pipelines", series.Patch{Body: "Why."}, nil); err != nil || !strings.HasPrefix(string(body), "# Changes\n\nWhy.\n\n/kind feature\n\n#") || !strings.Contains(string(body), "- [ ] Has tests\n") {
		t.Errorf("%v, without trailers the body is\n%s", err, body)
	}
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

func TestWhatAFixNeedsIsWhatItsMessageSays(t *testing.T) {
	p := series.Patch{File: "0003-c.patch", Trailers: []string{"Needs: 0001 to 0002", "Weakness: CWE-770"}}
	needs := stated([]series.Patch{{Title: "a"}, {Title: "b"}, p})
	if diff := cmp.Diff([][]int{nil, nil, {0, 1}}, needs); diff != "" {
		t.Errorf("what is needed (-want +got):\n%s", diff)
	}
	body, err := pullRequest("Kubernetes", p, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(body); !strings.Contains(got, "These changes come first:\n\n- a\n- b\n") || strings.Contains(got, "CWE-770") {
		t.Errorf("the body is\n%s", got)
	}
	if page := cover(series.Series{}, []series.Patch{p}, make([][]int, 1)); !strings.Contains(page, "| 0 | 0001 to 0002 |") {
		t.Errorf("the cover page is\n%s", page)
	}
}
