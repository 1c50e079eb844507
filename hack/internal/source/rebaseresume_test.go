package source

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRebaseDoesNotSkipAPatchThatWasResolvedWithGit(t *testing.T) {
	w := newRebaseWorld(t, true)
	w.conflict(false)
	w.resolve("1200")
	r := newRebase(w.layout, w.series, w.older, false, nil)
	w.ok(r.tree.Run(w.Context(), "add", "--all"))
	w.ok(r.tree.Run(w.Context(), "am", "--continue"))
	if _, _, err := w.rebase(true); err == nil || !strings.Contains(err.Error(), "nothing to skip") {
		t.Errorf("the error is %v", err)
	}
	how, _ := w.mustRebase(false)
	if diff := cmp.Diff([]string{RebasedApplied, RebasedResolved, RebasedApplied}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestRebaseLeavesTheCommitBeforeAPatchThatIsThereAlready(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.mustRebase(false)
	// A patch of the older series alone makes the change of the third one.
	const third, own = "0003-kubelet-change-step-30.patch", "0003-kubelet-own-step-30.patch"
	text, err := os.ReadFile(filepath.Join(w.older.Dir, third))
	w.ok(err)
	w.ok(os.Rename(filepath.Join(w.older.Dir, third), filepath.Join(w.older.Dir, "0004"+strings.TrimPrefix(third, "0003"))))
	w.ok(os.WriteFile(filepath.Join(w.older.Dir, own), []byte(strings.Replace(string(text), "change step 30", "own step 30", 1)), 0o644))
	// The third patch gets another message.
	path := filepath.Join(w.series.Dir, third)
	text, err = os.ReadFile(path)
	w.ok(err)
	w.ok(os.WriteFile(path, []byte(strings.Replace(string(text), "For a test.", "For another test.", 1)), 0o644))
	w.mustAssemble()

	how, _ := w.mustRebase(false)
	if diff := cmp.Diff([]string{RebasedKept, RebasedKept, RebasedKept, RebasedThere}, how); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	patches := w.carried()
	if patch := patches[own]; len(patches) != 3 || !strings.Contains(patch, "For a test.") {
		t.Errorf("of %q, the series' own is\n%s", slices.Sorted(maps.Keys(patches)), patch)
	}
}

func TestRebaseNamesTheEarlierResolutionOfAConflict(t *testing.T) {
	w := newRebaseWorld(t, true)
	if conflict := w.conflict(false); conflict.Before != "" {
		t.Errorf("nothing was carried before, and it names %q", conflict.Before)
	}
	w.resolve("1200")
	w.mustRebase(false)
	w.inOlder(func(older *world) { older.mustAssemble() })
	const patch = "0002-kubelet-change-step-20.patch"
	path := filepath.Join(w.series.Dir, patch)
	text, err := os.ReadFile(path)
	w.ok(err)
	w.ok(os.WriteFile(path, []byte(strings.Replace(string(text), "return 1020 }", "return 1021 }", 1)), 0o644))
	w.mustAssemble()

	conflict := w.conflict(false)
	if want := "patches/v1.32/" + patch; conflict.Before != want || !strings.Contains(conflict.Error(), "resolved before: "+want) {
		t.Errorf("the earlier resolution is %q, want %q:\n%v", conflict.Before, want, conflict)
	}
}
