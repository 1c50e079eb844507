package source

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/series"
)

// rebaseWorld is a repository with the series v1.33, and v1.32 that has no patches.
type rebaseWorld struct {
	*world
	older series.Series
}

// newRebaseWorld has three patches of v1.33. If conflicting is set, the second one changes the
// step that differs in v1.32.
func newRebaseWorld(t *testing.T, conflicting bool) *rebaseWorld {
	t.Helper()
	name, step := "rebase", "11"
	if conflicting {
		name, step = "rebase-conflict", "20"
	}
	w := copyOf(t, name, func(w *world) {
		w.mustAssemble()
		w.addEnvfile()
		for _, n := range []string{"10", step, "30"} {
			w.edit("pkg/kubelet/kubelet.go", "return "+n+" }", "return 10"+n+" }")
			w.commit("kubelet: change step " + n + "\n\nFor a test.")
		}
		w.mustWritePatches()
		w.mustAssemble()
	})
	pinned, err := Pin(t.Context(), w.layout, "v1.32", older, nil)
	w.ok(err)
	return &rebaseWorld{w, pinned}
}

func (w *rebaseWorld) rebase(skip bool) ([]Rebased, []string, error) {
	r := newRebase(w.layout, w.series, w.older, skip, nil)
	r.gen = w.gen.generator()
	done, written, err := r.run(w.Context())
	if written == nil {
		return done, nil, err
	}
	return done, written.Files, err
}

func (w *rebaseWorld) mustRebase(skip bool) (how, changed []string) {
	w.Helper()
	done, changed, err := w.rebase(skip)
	w.ok(err)
	for _, d := range done {
		how = append(how, d.How)
	}
	return how, changed
}

// conflict runs a rebase that must stop at a conflict, and returns it.
func (w *rebaseWorld) conflict(skip bool) *RebaseConflictError {
	w.Helper()
	_, _, err := w.rebase(skip)
	var conflict *RebaseConflictError
	if !errors.As(err, &conflict) {
		w.Fatalf("the error is %v, want a conflict", err)
	}
	return conflict
}

// inOlder runs f in a world whose series is the older one.
func (w *rebaseWorld) inOlder(f func(older *world)) {
	w.Helper()
	older := *w.world
	older.series = w.older
	f(&older)
}

// carried are the older series' patches by name.
func (w *rebaseWorld) carried() map[string]string {
	w.Helper()
	var patches map[string]string
	w.inOlder(func(older *world) { patches = older.patches() })
	return patches
}

// resolve resolves the conflict of the rebase.
func (w *rebaseWorld) resolve(value string) {
	w.Helper()
	file := filepath.Join(w.layout.Rebase("v1.32"), "pkg/kubelet/kubelet.go")
	data, err := os.ReadFile(file)
	w.ok(err)
	start, end := strings.Index(string(data), "<<<<<<<"), strings.Index(string(data), ">>>>>>>")
	if start < 0 || end < 0 {
		w.Fatal("no conflict markers")
	}
	end += strings.Index(string(data[end:]), "\n") + 1
	line := "func Step20() int { return " + value + " }\n"
	w.ok(os.WriteFile(file, []byte(string(data[:start])+line+string(data[end:])), 0o644))
}

// editSeries makes a commit of change in the tree of v1.33 and writes the patches.
func (w *rebaseWorld) editSeries(change func()) {
	w.Helper()
	change()
	w.mustWritePatches()
	w.mustAssemble()
}

func TestRebaseCarriesPatchesThatApply(t *testing.T) {
	w := newRebaseWorld(t, false)
	own := "new/pkg/kubelet/own.go" // a form that only v1.33 has
	w.ok(os.MkdirAll(filepath.Dir(filepath.Join(w.series.Dir, own)), 0o755))
	w.ok(os.WriteFile(filepath.Join(w.series.Dir, own), []byte("package kubelet\n"), 0o644))
	how, changed := w.mustRebase(false)
	if _, err := os.Stat(filepath.Join(w.older.Dir, own)); err != nil {
		t.Errorf("a form of the series is not carried: %v", err)
	}
	if diff := cmp.Diff([]string{RebasedApplied, RebasedApplied, RebasedApplied}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"patches/v1.32/0001-kubelet-change-step-10.patch",
		"patches/v1.32/0002-kubelet-change-step-11.patch",
		"patches/v1.32/0003-kubelet-change-step-30.patch",
		"patches/v1.32/carried",
	}, changed); diff != "" {
		t.Errorf("files written (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(w.layout.Rebase("v1.32")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the repository of the rebase is left: %v", err)
	}
	w.inOlder(func(older *world) { older.mustAssemble() })

	how, changed = w.mustRebase(false)
	if len(how)+len(changed) > 0 {
		t.Errorf("the second time it did %q and wrote %q", how, changed)
	}
}

func TestRebaseStopsAtAConflictAndGoesOn(t *testing.T) {
	for name, resume := range map[string]func(w *rebaseWorld){
		"with podenv": func(*rebaseWorld) {},
		"with git": func(w *rebaseWorld) {
			r := newRebase(w.layout, w.series, w.older, false, nil)
			w.ok(r.tree.Run(w.Context(), "add", "--all"))
			w.ok(r.tree.Run(w.Context(), "am", "--continue"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRebaseWorld(t, true)
			conflict := w.conflict(false)
			if diff := cmp.Diff([]string{"pkg/kubelet/kubelet.go"}, conflict.Files); diff != "" || conflict.Unmerged {
				t.Errorf("the conflict is %v (unmerged: %t)", conflict, conflict.Unmerged)
			}
			if text := conflict.Error(); !strings.Contains(text, "0002-kubelet-change-step-20.patch of series v1.33 conflicts with v1.32.13 in pkg/kubelet/kubelet.go") {
				t.Errorf("the error is %q", text)
			}
			if conflict := w.conflict(false); !conflict.Remaining || !strings.Contains(conflict.Error(), "still have conflict markers") {
				t.Errorf("nothing was resolved, and the error is %v", conflict)
			}
			if len(w.carried()) > 0 {
				t.Error("patches were written before the rebase was through")
			}
			w.resolve("1200")
			resume(w)
			how, _ := w.mustRebase(false)
			if diff := cmp.Diff([]string{RebasedApplied, RebasedResolved, RebasedApplied}, how); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			patch := w.carried()["0002-kubelet-change-step-20.patch"]
			if !strings.Contains(patch, "-func Step20() int { return 200 }") || !strings.Contains(patch, "+func Step20() int { return 1200 }") ||
				!strings.Contains(patch, "From: Ada") || !strings.Contains(patch, "For a test.") {
				t.Errorf("the carried patch is\n%s", patch)
			}
		})
	}
}

func TestRebaseGoesOnAfterAnInterruption(t *testing.T) {
	w := newRebaseWorld(t, true)
	w.conflict(false)
	dir := w.layout.Rebase("v1.32")
	st, err := readRebaseState(dir)
	w.ok(err)
	st.Stopped = false // as it is while git runs
	w.ok(st.write(dir))
	w.ok(os.WriteFile(filepath.Join(dir, ".git", "index.lock"), nil, 0o644))
	w.conflict(false)
	w.resolve("1200")
	if how, _ := w.mustRebase(false); len(how) != 3 {
		t.Errorf("results: %q", how)
	}
}

func TestRebaseKeepsTheWorkOfOneThatStartsMeanwhile(t *testing.T) {
	w := newRebaseWorld(t, true)
	r := newRebase(w.layout, w.series, w.older, false, nil)
	r.gen = w.gen.generator()
	inputsKey := r.gen.inputsKey
	r.gen.inputsKey = func(ctx context.Context, o codegen.Options) (string, error) {
		_, err := newRebaseState(r.tree.Dir, w.series.Name, older, nil, carried{}, "")
		w.ok(err)
		return inputsKey(ctx, o)
	}
	if _, _, err := r.run(w.Context()); err == nil || !strings.Contains(err.Error(), "another podenv") {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(rebaseStateFile(r.tree.Dir)); err != nil {
		t.Error(err)
	}
}

func TestRebaseCarriesOnlyWhatHasChangedSince(t *testing.T) {
	w := newRebaseWorld(t, true)
	w.conflict(false)
	w.resolve("1200")
	w.mustRebase(false)
	w.inOlder(func(older *world) { older.mustAssemble() })
	const first, adapted = "0001-kubelet-change-step-10.patch", "0002-kubelet-change-step-20.patch"

	t.Run("and keeps what a person adapted", func(t *testing.T) {
		w.editSeries(func() {
			w.edit("pkg/kubelet/kubelet.go", "return 1 }", "return 1001 }")
			w.commit("kubelet: change step 1")
		})
		how, _ := w.mustRebase(false)
		if diff := cmp.Diff([]string{RebasedKept, RebasedKept, RebasedKept, RebasedApplied}, how); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		if !strings.Contains(w.carried()[adapted], "return 1200 }") {
			t.Errorf("the adapted patch is\n%s", w.carried()[adapted])
		}
	})
	t.Run("and takes over a message", func(t *testing.T) {
		w.editSeries(func() {
			path := filepath.Join(w.series.Dir, adapted)
			data, err := os.ReadFile(path)
			w.ok(err)
			w.ok(os.WriteFile(path, []byte(strings.Replace(string(data), "For a test.", "For another test.", 1)), 0o644))
			w.mustAssemble()
		})
		w.mustRebase(false)
		if patch := w.carried()[adapted]; !strings.Contains(patch, "For another test.") || !strings.Contains(patch, "return 1200 }") {
			t.Errorf("the adapted patch is\n%s", patch)
		}
	})
	t.Run("and leaves out what the other series dropped", func(t *testing.T) {
		w.ok(os.Remove(filepath.Join(w.series.Dir, first)))
		w.mustAssemble()
		w.mustRebase(false)
		if patches := w.carried(); len(patches) != 3 || patches[first] != "" {
			t.Errorf("%d patches, among them %q", len(patches), patches[first])
		}
	})
}

func TestRebaseReportsAnAdaptedPatchThatItCarriesAgain(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.mustRebase(false)
	const last = "0003-kubelet-change-step-30.patch"
	change := func(s series.Series, value string) {
		path := filepath.Join(s.Dir, last)
		data, err := os.ReadFile(path)
		w.ok(err)
		w.ok(os.WriteFile(path, []byte(strings.Replace(string(data), "return 1030 }", "return "+value+" }", 1)), 0o644))
	}
	w.inOlder(func(older *world) {
		change(older.series, "1031")
		older.mustAssemble()
	})
	change(w.series, "1032")
	w.mustAssemble()

	how, _ := w.mustRebase(false)
	if diff := cmp.Diff([]string{RebasedKept, RebasedKept, RebasedAgain}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestRebaseKeepsASeriesOwnPatchesInTheirPlace(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.mustRebase(false)
	w.inOlder(func(older *world) {
		older.mustAssemble()
		dir := older.layout.Tree("v1.32")
		r := repo{gitrepo.Repo{Dir: dir}}
		// Between the second patch and the third.
		w.ok(r.Run(w.Context(), "reset", "--quiet", "--hard", "HEAD^"))
		w.ok(os.WriteFile(filepath.Join(dir, "docs/own.md"), []byte("own\n"), 0o644))
		w.ok(r.Run(w.Context(), "add", "--all"))
		w.ok(r.Run(w.Context(), "commit", "--quiet", "--message=docs: of this series alone"))
		w.ok(r.Run(w.Context(), "cherry-pick", "podenv@{2}"))
		older.mustWritePatches()
		older.mustAssemble()
	})
	w.editSeries(func() {
		w.edit("pkg/kubelet/kubelet.go", "return 1 }", "return 1001 }")
		w.commit("kubelet: change step 1")
	})
	w.mustRebase(false)
	if patches := w.carried(); patches["0003-docs-of-this-series-alone.patch"] == "" || len(patches) != 5 {
		t.Errorf("the patches are %q", slices.Sorted(maps.Keys(patches)))
	}
}

func TestRebaseLeavesOutAPatchThatWasSkipped(t *testing.T) {
	w := newRebaseWorld(t, true)
	if _, _, err := w.rebase(true); err == nil {
		t.Error("skipped a patch of a rebase that has not begun")
	}
	w.conflict(false)
	how, _ := w.mustRebase(true)
	if diff := cmp.Diff([]string{RebasedApplied, RebasedSkipped, RebasedApplied}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if n := len(w.carried()); n != 2 {
		t.Errorf("%d patches", n)
	}
	if how, _ := w.mustRebase(false); len(how) > 0 {
		t.Errorf("the next rebase did %q", how)
	}
}

func TestRebaseReportsAFileThatTheReleaseLacks(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.editSeries(func() {
		w.edit("docs/windows.txt", "two\r\n", "2\r\n")
		w.commit("docs: change a file")
	})
	for range 2 { // going on without a decision changes nothing
		conflict := w.conflict(false)
		if diff := cmp.Diff([]string{"docs/windows.txt"}, conflict.OneSided); diff != "" {
			t.Fatalf("files of one side alone (-want +got):\n%s", diff)
		}
	}
	r := newRebase(w.layout, w.series, w.older, false, nil)
	w.ok(r.tree.Run(t.Context(), "rm", "--quiet", "docs/windows.txt"))
	w.ok(os.WriteFile(filepath.Join(r.tree.Dir, "docs", "other.txt"), []byte("2\n"), 0o644))
	w.mustRebase(false)
	if patch := w.carried()["0004-docs-change-a-file.patch"]; !strings.Contains(patch, "New-File: docs/other.txt") || strings.Contains(patch, "windows.txt") {
		t.Errorf("the carried patch is\n%s", patch)
	}
}

func TestRebaseRefusesToOverwriteEdits(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.inOlder(func(older *world) { older.mustAssemble() })
	file := filepath.Join(w.layout.Tree("v1.32"), "pkg/kubelet/kubelet.go")
	w.ok(os.WriteFile(file, []byte("package kubelet\n"), 0o644))
	if _, _, err := w.rebase(false); !errors.Is(err, ErrEdited) {
		t.Errorf("the error is %v", err)
	}
}

func TestAbortRebaseLeavesTheSeriesAsItWas(t *testing.T) {
	w := newRebaseWorld(t, true)
	if err := AbortRebase(t.Context(), w.layout, w.older, nil); err == nil {
		t.Error("aborted a rebase that has not begun")
	}
	w.conflict(false)
	found, err := RebasesInProgress(w.layout)
	w.ok(err)
	if diff := cmp.Diff(map[string]string{"v1.32": "v1.33"}, found); diff != "" {
		t.Errorf("rebases in progress (-want +got):\n%s", diff)
	}
	w.ok(AbortRebase(t.Context(), w.layout, w.older, nil))
	if found, _ := RebasesInProgress(w.layout); len(found)+len(w.carried()) > 0 {
		t.Errorf("left in progress: %v; %d patches", found, len(w.carried()))
	}
}

// move moves the series v1.33 of w to release, or to that of the rebase in progress.
func (w *rebaseWorld) move(release string, skip bool) ([]Rebased, []string, error) {
	to, err := Repin(w.Context(), w.layout, w.series, release, nil)
	if err != nil {
		return nil, nil, err
	}
	moved := *w
	moved.older = to
	return moved.rebase(skip)
}

func (w *rebaseWorld) mustMove(release string) (how, changed []string) {
	w.Helper()
	done, changed, err := w.move(release, false)
	w.ok(err)
	for _, d := range done {
		how = append(how, d.How)
	}
	w.load()
	return how, changed
}

func TestFitOfAPatchIsWhatGitDoes(t *testing.T) {
	w := newRebaseWorld(t, false)
	r := newRebase(w.layout, w.series, w.older, false, nil)
	r.tree.Dir = w.dir()
	step := rebaseStep{File: filepath.Join(w.series.Dir, "0002-kubelet-change-step-11.patch")}
	w.git("reset", "--quiet", "--hard", "HEAD~2")
	for _, c := range []struct{ old, new, want string }{
		{"package kubelet\n", "package kubelet // here\n", RebasedApplied},
		{"package kubelet // here\n", "package kubelet\n\n// Above.\n", RebasedMoved},
		{"// Step11 is a step.\n", "// Step11 is another step.\n", RebasedMerged},
	} {
		w.edit("pkg/kubelet/kubelet.go", c.old, c.new)
		w.commit("theirs")
		if got := r.fit(t.Context(), step); got != c.want {
			t.Errorf("after %q git am: %s, want %s", c.new, got, c.want)
		}
	}
}

func TestEffortIsTheSumOfScores(t *testing.T) {
	done := []Rebased{{How: RebasedApplied}, {How: RebasedMoved}, {How: RebasedResolved}, {How: RebasedApplied}, {How: RebasedMerged}}
	if got, want := Effort(done), "14\t2 applied\t1 context moved\t1 merged\t1 by hand"; got != want {
		t.Errorf("the effort is %q, want %q", got, want)
	}
}

func TestRebaseMovesASeriesToTheNextRelease(t *testing.T) {
	w := newRebaseWorld(t, false)
	was, carried := w.patches(), filepath.Join(w.series.Dir, carriedName)
	w.ok(os.WriteFile(carried, []byte("from v1.34\n"), 0o644))
	how, changed := w.mustMove("v1.33.14")
	if diff := cmp.Diff([]string{RebasedApplied, RebasedApplied, RebasedApplied}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, file := range []string{"patches/v1.33/go.mod", "patches/v1.33/go.sum"} {
		if !slices.Contains(changed, file) {
			t.Errorf("wrote %q, without %s", changed, file)
		}
	}
	if now := w.patches(); w.series.Release != "v1.33.14" || len(now) != len(was) {
		t.Errorf("the series has %d patches on %s", len(now), w.series.Release)
	}
	if text, _ := os.ReadFile(carried); string(text) != "from v1.34\n" {
		t.Errorf("%s is now %q", carried, text)
	}
	w.mustAssemble()
	if got := w.git("show", "HEAD:pkg/kubelet/kubelet.go"); !strings.Contains(got, `"v1.33.14"`) || !strings.Contains(got, "return 1030 }") {
		t.Errorf("the tree has\n%s", got)
	}
	if how, changed := w.mustMove("v1.33.14"); len(how)+len(changed) > 0 {
		t.Errorf("the second time it did %q and wrote %q", how, changed)
	}
}

func TestRebaseThatMovesASeriesStopsAtAConflict(t *testing.T) {
	w := newRebaseWorld(t, false)
	was, patches := w.series, w.patches()
	stop := func(release string) *RebaseConflictError {
		t.Helper()
		_, _, err := w.move(release, false)
		var conflict *RebaseConflictError
		if !errors.As(err, &conflict) {
			t.Fatalf("the error is %v, want a conflict", err)
		}
		return conflict
	}
	// Without a release it is the newest, in which step 30 differs.
	if text := stop("").Error(); !strings.Contains(text, "0003-kubelet-change-step-30.patch of series v1.33 conflicts with v1.33.15 in pkg/kubelet/kubelet.go") {
		t.Errorf("the error is %q", text)
	}
	w.load()
	if diff := cmp.Diff(patches, w.patches()); diff != "" || w.series.Release != was.Release || w.series.Pins != was.Pins {
		t.Errorf("the series has changed before the rebase was through: it is on %s, patches (-want +got):\n%s", w.series.Release, diff)
	}
	if _, _, err := w.move("v1.33.14", false); err == nil || !strings.Contains(err.Error(), "to v1.33.15 is in progress") {
		t.Errorf("a move to another release meanwhile gave %v", err)
	}
	if c := stop(""); !c.Remaining {
		t.Errorf("nothing was resolved, and the error is %v", c)
	}
	w.ok(AbortRebase(t.Context(), w.layout, w.series, nil))
	w.load()
	if diff := cmp.Diff(patches, w.patches()); diff != "" || w.series.Release != was.Release || w.series.Pins != was.Pins {
		t.Errorf("after --abort the series is on %s, patches (-want +got):\n%s", w.series.Release, diff)
	}
	stop(clashing)
	_, _, err := w.move("", true)
	w.ok(err)
	w.load()
	if len(w.patches()) != 2 || w.series.Release != clashing {
		t.Errorf("with the patch skipped the series has %d patches on %s", len(w.patches()), w.series.Release)
	}
}
