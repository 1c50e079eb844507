package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// edit is what a user may do in a tree.
type edit struct {
	name string
	do   func(w *world)
	// named is what the error must name.
	named string
	state editState
}

type editState int

const (
	uncommitted editState = iota
	committed
	unfinished // git is in the middle of something
)

var edits = []edit{
	{"a changed file", func(w *world) { w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2 }") }, "pkg/kubelet/kubelet.go", uncommitted},
	{"an untracked file", func(w *world) { w.edit("pkg/kubelet/more.go", "", "package kubelet\n") }, "pkg/kubelet/more.go", uncommitted},
	{"a deleted file", func(w *world) { w.ok(os.Remove(filepath.Join(w.dir(), "hack/update.sh"))) }, "hack/update.sh", uncommitted},
	{"a staged file", func(w *world) { w.edit("new.txt", "", "new\n"); w.git("add", "new.txt") }, "new.txt", uncommitted},
	{"an edited new file", func(w *world) { w.edit("pkg/kubelet/envfile/envfile.go", "", "package envfile // x\n") }, "pkg/kubelet/envfile/envfile.go", uncommitted},
	{"a commit on top", func(w *world) { w.edit("new.txt", "", "new\n"); w.commit("mine") }, "mine", committed},
	{"a commit on a branch", func(w *world) {
		w.git("checkout", "-q", "-b", "work")
		w.edit("new.txt", "", "new\n")
		w.commit("mine")
	}, "mine", committed},
	{"an amended commit", func(w *world) { w.git("commit", "-q", "--amend", "--message=reworded") }, "reworded", committed},
	{"a rebase in progress", func(w *world) {
		w.edit("new.txt", "", "new\n")
		w.commit("mine")
		w.git("-c", "sequence.editor=sed -i 1s/pick/edit/", "rebase", "-q", "-i", "HEAD~1")
	}, "rebase is in progress", unfinished},
}

// eachEdit runs a test for each edit, in a tree of its own that has the edit, and checks that the
// test leaves the tree as it is.
func eachEdit(t *testing.T, test func(w *world, e edit)) {
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			e.do(w)
			before := w.snapshot()
			test(w, e)
			if after := w.snapshot(); after != before {
				t.Errorf("the tree was touched:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// wantRefused checks that the edit is refused, by its name and with what to do.
func (w *world) wantRefused(e edit, err error) {
	w.Helper()
	if !errors.Is(err, ErrEdited) {
		w.Fatalf("error %v, want ErrEdited", err)
	}
	says := []string{e.named, w.dir(), "podenv patches --series v1.33", "podenv tree --series v1.33 --discard"}
	if e.state == uncommitted {
		says = append(says, "add --all && git")
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			w.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if e.state == committed && strings.Contains(err.Error(), "add --all && git") {
		w.Errorf("the error says to commit, and all is:\n%v", err)
	}
}

func TestEditedTreeIsNeverOverwritten(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"same inputs":    func(*world) {},
		"changed inputs": changeInputs,
		"new release":    func(w *world) { w.pin("v1.33.14") },
	} {
		t.Run(name, func(t *testing.T) {
			eachEdit(t, func(w *world, e edit) {
				change(w)
				_, err := w.assemble(Options{})
				w.wantRefused(e, err)
			})
		})
	}
}

// changeInputs changes what a tree is assembled from.
func changeInputs(w *world) { w.write("pkg/kubelet/envfile/envfile.go", "package envfile // newer\n") }

func TestAnEditedTreeIsReturnedWhereNothingWouldBeOverwritten(t *testing.T) {
	eachEdit(t, func(w *world, e edit) {
		tree, err := w.assemble(Options{KeepEdits: true})
		switch {
		case e.state == unfinished:
			w.wantRefused(e, err)
		case err != nil || tree.Dir != w.dir():
			w.Errorf("with unchanged inputs: %v", err)
		}
		changeInputs(w)
		_, err = w.assemble(Options{KeepEdits: true})
		w.wantRefused(e, err)
	})
}

// snapshot is everything in the tree that a user would miss.
func (w *world) snapshot() string {
	w.Helper()
	return strings.Join([]string{w.git("rev-parse", "HEAD"), w.git("status", "--porcelain", "--branch"), w.git("diff", "HEAD"), w.git("branch", "-v", "--no-abbrev")}, "\n")
}

func TestDiscardDropsEditsAndKeepsThemAside(t *testing.T) {
	for _, e := range edits {
		t.Run(e.name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			want := w.git("rev-parse", "HEAD")
			e.do(w)
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
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // newer\n")
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
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // newer\n")
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
