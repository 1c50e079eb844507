package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edits are the edits that a user may make in a tree, and what the error must name.
var edits = map[string]struct {
	do    func(w *world)
	named string
}{
	"a changed file":     {func(w *world) { w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2 }") }, "pkg/kubelet/kubelet.go"},
	"an untracked file":  {func(w *world) { w.edit("pkg/kubelet/more.go", "", "package kubelet\n") }, "pkg/kubelet/more.go"},
	"a deleted file":     {func(w *world) { w.ok(os.Remove(filepath.Join(w.dir(), "hack/update.sh"))) }, "hack/update.sh"},
	"a staged file":      {func(w *world) { w.edit("new.txt", "", "new\n"); w.git("add", "new.txt") }, "new.txt"},
	"an edited new file": {func(w *world) { w.edit("pkg/kubelet/envfile/envfile.go", "", "package envfile // x\n") }, "pkg/kubelet/envfile/envfile.go"},
	"a commit on top":    {func(w *world) { w.edit("new.txt", "", "new\n"); w.commit("mine") }, "mine"},
	"a commit on a branch": {func(w *world) {
		w.git("checkout", "-q", "-b", "work")
		w.edit("new.txt", "", "new\n")
		w.commit("mine")
	}, "mine"},
	"an amended commit": {func(w *world) { w.git("commit", "-q", "--amend", "--message=reworded") }, "reworded"},
	"a rebase in progress": {func(w *world) {
		w.edit("new.txt", "", "new\n")
		w.commit("mine")
		w.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
	}, "rebase is in progress"},
}

func TestEditedTreeIsNeverOverwritten(t *testing.T) {
	for name, edit := range edits {
		for changed, change := range map[string]func(w *world){
			"same inputs":    func(*world) {},
			"changed inputs": func(w *world) { w.write("pkg/kubelet/envfile/more.go", "package envfile\n") },
			"new release":    func(w *world) { w.pin("v1.33.14") },
		} {
			t.Run(name+" with "+changed, func(t *testing.T) {
				w := newWorldWithPatches(t)
				edit.do(w)
				change(w)
				before := w.snapshot()
				_, err := w.assemble(Options{})
				if !errors.Is(err, ErrEdited) {
					t.Fatalf("error %v, want ErrEdited", err)
				}
				for _, want := range []string{edit.named, w.dir(), "podenv patches --series v1.33", "podenv tree --series v1.33 --discard"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error does not say %q:\n%v", want, err)
					}
				}
				if dirty := w.git("status", "--porcelain") != ""; dirty != strings.Contains(err.Error(), "add --all && git") && name != "a rebase in progress" {
					t.Errorf("a tree with changes that are not committed: %t, but the error is\n%v", dirty, err)
				}
				if after := w.snapshot(); after != before {
					t.Errorf("the tree was touched:\n%s\nbefore:\n%s", after, before)
				}
			})
		}
	}
}

func TestAnEditedTreeIsReturnedWhereNothingWouldBeOverwritten(t *testing.T) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			edit.do(w)
			before := w.snapshot()
			tree, err := w.assemble(Options{KeepEdits: true})
			if unfinished := name == "a rebase in progress"; unfinished != errors.Is(err, ErrEdited) || !unfinished && (err != nil || tree.Dir != w.dir()) {
				t.Errorf("with unchanged inputs: %v", err)
			}
			w.write("pkg/kubelet/envfile/more.go", "package envfile\n")
			if _, err := w.assemble(Options{KeepEdits: true}); !errors.Is(err, ErrEdited) {
				t.Errorf("with changed inputs: %v, want ErrEdited", err)
			}
			if after := w.snapshot(); after != before {
				t.Errorf("the tree was touched:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// snapshot is everything in the tree that a user would miss.
func (w *world) snapshot() string {
	w.Helper()
	return strings.Join([]string{w.git("rev-parse", "HEAD"), w.git("status", "--porcelain", "--branch"), w.git("diff", "HEAD"), w.git("branch", "-v", "--no-abbrev")}, "\n")
}

func TestDiscardDropsEditsAndKeepsThemAside(t *testing.T) {
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			want := w.git("rev-parse", "HEAD")
			edit.do(w)
			_, err := w.assemble(Options{Discard: true})
			w.ok(err)
			if got := w.git("rev-parse", "HEAD"); got != want || w.git("status", "--porcelain") != "" {
				t.Errorf("HEAD is %s, want %s; status:\n%s", got, want, w.git("status"))
			}
			if saved := w.git("for-each-ref", savedRefs); saved == "" {
				t.Error("nothing is kept of the edit")
			}
			w.mustAssemble()
		})
	}
}

func TestDiscardedFilesCanBeRestored(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/kubelet/more.go", "", "package kubelet // mine\n")
	_, err := w.assemble(Options{Discard: true})
	w.ok(err)
	ref := w.git("for-each-ref", "--format=%(refname)", savedRefs)
	if got := w.git("show", ref+":pkg/kubelet/more.go"); got != "package kubelet // mine" {
		t.Errorf("%s has %q", ref, got)
	}
}

func TestIgnoredFilesAreNoEdit(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("_output/bin/kubelet", "", "binary")
	w.write("pkg/kubelet/envfile/more.go", "package envfile\n")
	w.mustAssemble()
	if _, err := os.Stat(filepath.Join(w.dir(), "_output/bin/kubelet")); err != nil {
		t.Errorf("what a build left in an ignored folder is gone: %v", err)
	}
}

func TestLookingAtAnEarlierCommitIsNoEdit(t *testing.T) {
	w := newWorldWithPatches(t)
	want := w.git("rev-parse", "HEAD")
	w.git("checkout", "-q", "HEAD~2")
	w.mustAssemble()
	w.wantRev("HEAD", want)
}

func TestOtherBranchesStayWhereTheyAre(t *testing.T) {
	w := newWorldWithPatches(t)
	w.git("branch", "mine")
	want := w.git("rev-parse", "mine")
	w.write("pkg/kubelet/envfile/more.go", "package envfile\n")
	w.mustAssemble()
	if got := w.git("rev-parse", "mine"); got != want {
		t.Errorf("the branch mine moved from %s to %s", want, got)
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	w := newWorld(t)
	w.ok(os.MkdirAll(w.dir(), 0o755))
	w.mustAssemble() // an empty folder is in nobody's way
	w.ok(os.RemoveAll(filepath.Join(w.dir(), ".git")))
	if _, err := w.assemble(Options{Discard: true}); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("error %v", err)
	}
}

func TestDamagedStateIsNamed(t *testing.T) {
	w := newWorld(t)
	w.mustAssemble()
	w.ok(os.WriteFile(stateFile(w.dir()), []byte("{"), 0o644))
	for name, call := range map[string]func() error{
		"Assemble":     func() error { _, err := w.assemble(Options{}); return err },
		"WritePatches": func() error { _, err := w.writePatches(); return err },
		"Open":         func() error { _, err := w.open(); return err },
		"Describe":     func() error { _, err := Describe(context.Background(), w.layout, w.series, false); return err },
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "state.json is damaged") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
