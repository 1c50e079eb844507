package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// generatorsLeaveTheRelease runs all of the release's own generators on the stock release. They must
// change nothing: otherwise what they generate for the patches differs from upstream.
func generatorsLeaveTheRelease(c *check) error {
	return c.codegenTest(stock.value, "TestAllGeneratorsLeaveTheReleaseAsItIs")
}

// generatorsReach adds a field to the stock release. It compares the code generated for the packages that
// the field reaches with the output of all generators.
func generatorsReach(c *check) error {
	return c.codegenTest(stock.value, "TestReachedPackagesAreAllThatChange")
}

// codegenTest runs a test of codegen that needs an assembled tree.
func (c *check) codegenTest(t *source.Tree, name string) error {
	env := []string{"PODENV_TREE=" + t.Dir, "PODENV_RELEASE=" + t.Series.Release}
	return c.countGoTest(repo.Root, env, "-timeout=2h", "-run=^"+name+"$", "podenv.dev/hack/internal/codegen")
}

// roundTrip checks that the commits of t convert to the patch files and new files of this repository.
// It writes them to a copy, because other checks read the files meanwhile, and a second run would find
// no difference.
func roundTrip(c *check, t *source.Tree) error {
	scratch := layout.Layout{Root: filepath.Join(repo.Output(), "proof", "roundtrip")}
	c.Cleanup(func() { os.RemoveAll(scratch.Root) })
	if err := os.RemoveAll(scratch.Root); err != nil {
		return err
	}
	for _, dir := range []string{"patches", "pkg", "staging"} {
		if err := os.CopyFS(filepath.Join(scratch.Root, dir), os.DirFS(filepath.Join(repo.Root, dir))); err != nil {
			return err
		}
	}
	tree := scratch.Tree(t.Name())
	if err := run.Command(c.ctx, "git", "clone", "--quiet", "--shared", t.Dir, tree).Run(); err != nil {
		return err
	}
	const state = ".git/podenv" // what podenv knows of the tree
	if err := os.CopyFS(filepath.Join(tree, state), os.DirFS(filepath.Join(t.Dir, state))); err != nil {
		return err
	}
	s, err := series.Load(scratch, t.Series.Name)
	if err != nil {
		return err
	}
	written, err := source.WritePatches(c.ctx, scratch, s, nil)
	if err == nil && len(written.Files) > 0 {
		err = fmt.Errorf("the tree's commits give other files than the repository has: `podenv patches --series %s` would write %s", s.Name, strings.Join(written.Files, ", "))
	}
	return err
}

// checkout is a clone of a tree in its own directory.
type checkout struct {
	*check
	tree *source.Tree
	dir  string
}

func (c *check) clone(t *source.Tree, name string) (*checkout, error) {
	w := &checkout{c, t, filepath.Join(repo.Output(), "proof", name)}
	c.Cleanup(func() { os.RemoveAll(w.dir) })
	if err := os.RemoveAll(w.dir); err != nil {
		return nil, err
	}
	return w, run.Command(c.ctx, "git", "clone", "--quiet", "--shared", "--no-checkout", t.Dir, w.dir).Run()
}

func (w *checkout) git(args ...string) (string, error) {
	identity := []string{"-C", w.dir, "-c", "user.name=podenv", "-c", "user.email=podenv@podenv.dev"}
	return run.Command(w.ctx, "git", append(identity, args...)...).Log(w.step.Log()).Output()
}

// goBuild runs go build in the checkout, as users without podenv do.
func (w *checkout) goBuild(args ...string) error {
	return run.Command(w.ctx, "go", append([]string{"build"}, args...)...).Dir(w.dir).Env(treeEnv...).Log(w.step.Log()).Run()
}

// exportOntoTag does what an upstream maintainer would do with the exported series: git am onto a
// pristine tree of the tag, then go build, without podenv.
func exportOntoTag(c *check) error {
	w, err := c.applyExport(built.value.Tree)
	if err != nil {
		return err
	}
	c.step.Now("go build ./cmd/kubelet ./cmd/kube-apiserver")
	return w.goBuild("-o", filepath.Join(w.dir, "_output")+"/", "./cmd/kubelet", "./cmd/kube-apiserver")
}

// applyExport applies the exported series of t to a pristine tree of the tag. The result must be
// the tree that the tests run on, file for file.
func (c *check) applyExport(t *source.Tree) (*checkout, error) {
	files, err := source.Export(c.ctx, repo, t.Series, filepath.Join(repo.Output(), "proof", "export"), false, nil)
	if err != nil {
		return nil, err
	}
	c.step.Now("a pristine checkout of %s", t.Series.Release)
	w, err := c.clone(t, "pristine")
	if err != nil {
		return nil, err
	}
	release, _, err := t.Release(c.ctx)
	if err != nil {
		return nil, err
	}
	if _, err := w.git("checkout", "--quiet", release); err != nil {
		return nil, err
	}
	c.step.Now("git am of %d files", len(files))
	if _, err := w.git(append([]string{"am", "--quiet"}, files...)...); err != nil {
		return nil, err
	}
	want, err := run.Command(c.ctx, "git", "-C", t.Dir, "rev-parse", "HEAD^{tree}").Output()
	if err != nil {
		return nil, err
	}
	if diff, err := w.git("diff", "--stat", want, "HEAD"); err != nil || diff != "" {
		return nil, errors.Join(err, fmt.Errorf("git am of the export gives another tree than podenv assembles:\n%s", diff))
	}
	return w, nil
}

// kubeletForWindows compiles the kubelet for Windows, and the tests of its packages that the tree's
// commits touch. They are not run: of all analyzers go vet runs a cheap one.
func kubeletForWindows(c *check, t *source.Tree) error {
	files, err := t.Changed(c.ctx)
	if err != nil {
		return err
	}
	args := []string{"vet", "-directive", "./cmd/kubelet"}
	for _, pkg := range t.Packages(files) {
		if strings.HasPrefix(pkg, "k8s.io/kubernetes/pkg/kubelet") {
			args = append(args, pkg)
		}
	}
	windows := append([]string{"GOOS=windows", "GOARCH=amd64"}, treeEnv...)
	return c.command("go", args...).Dir(t.Dir).Env(windows...).Run()
}

// eachPatch applies the series patch by patch. After each, it generates code, compiles the packages
// that the patch touches and runs their tests: a patch that needs a later one breaks bisection,
// and cannot be sent upstream on its own.
func eachPatch(c *check, t *source.Tree) error {
	w, err := c.clone(t, "steps")
	if err != nil {
		return err
	}
	// All commits except podenv's own, of the release and of generated code.
	log, err := w.git("log", "--reverse", "--format=%H %s", "--invert-grep", "--grep=^Podenv-Commit: ", "HEAD")
	if err != nil {
		return err
	}
	if log == "" {
		return fmt.Errorf("series %s has no patches: add some to %s", t.Series.Name, t.Series.Dir)
	}
	first, _, _ := strings.Cut(log, " ")
	if _, err := w.git("checkout", "--quiet", first+"^"); err != nil {
		return err
	}
	release, _, err := t.Release(c.ctx)
	if err != nil {
		return err
	}
	generators := codegen.Options{Tree: w.dir, Release: t.Series.Release, Base: release, Work: repo.Cache("codegen")}
	inputs := ""
	if !t.Series.IsTekton() { // of which nothing is generated
		if inputs, err = codegen.InputsKey(c.ctx, generators); err != nil {
			return err
		}
	}
	for line := range strings.SplitSeq(log, "\n") {
		commit, subject, _ := strings.Cut(line, " ")
		c.part(subject, func() (err error) {
			c.step.Now("%s", subject)
			inputs, err = w.apply(commit, generators, inputs)
			if err != nil {
				return err
			}
			return w.test(commit)
		})
	}
	return nil
}

// apply applies a commit, and generates code if the inputs of the generators change. It returns the
// hash of the inputs.
func (w *checkout) apply(commit string, generators codegen.Options, before string) (string, error) {
	if _, err := w.git("cherry-pick", commit); err != nil || w.tree.Series.IsTekton() {
		return before, err
	}
	inputs, err := codegen.InputsKey(w.ctx, generators)
	if err != nil || inputs == before {
		return before, err
	}
	if err := codegen.Generate(w.ctx, generators, w.step); err != nil {
		return before, err
	}
	if _, err := w.git("add", "--all"); err != nil {
		return before, err
	}
	_, err = w.git("commit", "--quiet", "--allow-empty", "--message", "generated")
	return inputs, err
}

// test runs the tests of the packages that a commit touches.
func (w *checkout) test(commit string) error {
	files, err := gitrepo.Repo{Dir: w.tree.Dir}.ChangedIn(w.ctx, commit)
	if err != nil {
		return err
	}
	packages := w.tree.Packages(files)
	if len(packages) == 0 {
		return nil
	}
	cases, err := w.upstreamTestsOf(w.tree, w.dir, packages)
	if errors.Is(err, errNoTest) {
		return w.goBuild(packages...) // as pkg/features in old releases: go test leaves them out
	}
	var names []string
	for _, test := range cases {
		if failed(test) {
			names = append(names, test.ClassName+" "+test.Name)
		}
	}
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("these tests fail after the patch: %s", strings.Join(names, ", "))
	}
	return err
}

func TestRoundTripFindsAnEditAndWritesNothing(t *testing.T) {
	root := repo
	repo = layout.Layout{Root: t.TempDir()}
	t.Cleanup(func() { repo = root })
	patches := filepath.Join(repo.Root, "patches", "v1.33")
	if err := errors.Join(
		os.CopyFS(patches, os.DirFS(filepath.Join(layout.MustFind().Root, "patches", "v1.33"))),
		os.Mkdir(filepath.Join(repo.Root, "pkg"), 0o755),
		os.Mkdir(filepath.Join(repo.Root, "staging"), 0o755),
	); err != nil {
		t.Fatal(err)
	}
	mustGlob := func(pattern string) []string {
		files, err := filepath.Glob(filepath.Join(patches, pattern))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	for _, patch := range mustGlob("*.patch") {
		if err := os.Remove(patch); err != nil {
			t.Fatal(err)
		}
	}

	// A tree with one commit that is in no patch.
	tree := gitrepo.Repo{Dir: repo.Tree("v1.33")}
	git := func(args ...string) string {
		out, err := tree.Quiet(t.Context(), append([]string{"-c", "user.name=a", "-c", "user.email=a@example.test"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	commit := func(text, message string) string {
		if err := os.WriteFile(filepath.Join(tree.Dir, "a.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "--all")
		git("commit", "--quiet", "--message", message)
		return git("rev-parse", "HEAD")
	}
	if err := os.MkdirAll(tree.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "--quiet")
	release := commit("package a\n", "v1.33.0\n\nPodenv-Commit: release")
	commit("package b\n", "Edit a.go")
	state := filepath.Join(tree.Dir, ".git", "podenv", "state.json")
	if err := errors.Join(
		os.MkdirAll(filepath.Dir(state), 0o755),
		os.WriteFile(state, fmt.Appendf(nil, `{"key": "k", "steps": [{"kind": "release", "commit": %q}]}`, release), 0o644),
	); err != nil {
		t.Fatal(err)
	}

	s, err := series.Load(repo, "v1.33")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := &check{T: t, ctx: t.Context()}
		err := roundTrip(c, &source.Tree{Dir: tree.Dir, Series: s})
		if err == nil || !strings.Contains(err.Error(), "would write patches/v1.33/0001-Edit-a.go.patch") {
			t.Errorf("the error is %v", err)
		}
	}
	if written := mustGlob("*.patch"); len(written) > 0 {
		t.Errorf("it wrote %q", written)
	}
}
