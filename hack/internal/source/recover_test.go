package source

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// killAt is the variable that tells the child process of a test where to kill itself.
const killAt = "PODENV_TEST_KILL_AT"

// TestKilledChild is not a test: it is the child process that TestKilledAssemblyRecovers kills.
func TestKilledChild(t *testing.T) {
	at := os.Getenv(killAt)
	if at == "" {
		t.Skip("runs only as the child process of TestKilledAssemblyRecovers")
	}
	w := &world{TB: t, layout: layout.Layout{Root: os.Getenv("PODENV_TEST_ROOT")}, gen: &fakeGenerator{}}
	w.load()
	die := func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) } //nolint:errcheck // it does not return
	w.run = func(a *assembly) {
		switch at {
		case "after the patches":
			a.gen.inputsKey = func(context.Context, codegen.Options) (string, error) { die(); return "", nil }
		case "while generating":
			w.gen.stop = die
			a.gen = w.gen.generator()
		}
	}
	w.mustAssemble()
	t.Fatal("the assembly was not killed")
}

func TestKilledAssemblyRecovers(t *testing.T) {
	for _, at := range []string{"after the patches", "while generating"} {
		for _, first := range []string{"first", "later"} {
			t.Run(at+" of a "+first+" assembly", func(t *testing.T) {
				w := newWorldWithPatches(t)
				w.editPatch("0002-api-add-a-field.patch", "Field int", "Field string")
				if first == "first" {
					w.removeMade()
				}
				child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$")
				child.Env = append(os.Environ(), killAt+"="+at, "PODENV_TEST_ROOT="+w.layout.Root)
				out, err := child.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child ended with %v:\n%s", err, out)
				}
				if _, err := w.open(); !errors.Is(err, ErrNoTree) {
					t.Errorf("a half-made tree opens: %v", err)
				}
				w.mustAssemble()
				recovered := w.git("rev-parse", "HEAD")
				w.reassemble()
				w.wantRev("HEAD", recovered)
			})
		}
	}
}

// interrupted sets the state that an interrupted assembly leaves.
func (w *world) interrupted() {
	w.Helper()
	st, err := readState(w.dir())
	w.ok(err)
	st.Busy, st.Key = true, ""
	w.ok(writeState(w.dir(), st))
}

func TestFilesOfAnInterruptedAssemblyAreKeptAside(t *testing.T) {
	w := newWorldWithPatches(t)
	want := w.git("rev-parse", "HEAD")
	w.interrupted()
	w.edit("pkg/kubelet/kubelet.go", "return 5 }", "return 55 }")
	w.ok(os.WriteFile(filepath.Join(w.dir(), ".git/index.lock"), nil, 0o644))
	w.mustAssemble()
	w.wantRev("HEAD", want)
	ref := w.git("for-each-ref", "--format=%(refname)", savedRefs)
	if !strings.Contains(w.git("show", ref), "return 55 }") {
		t.Error("the changed file is not kept")
	}
}

func TestCommitsAfterAnInterruptedAssemblyAreAnEdit(t *testing.T) {
	w := newWorldWithPatches(t)
	w.interrupted()
	w.edit("new.txt", "", "new\n")
	w.commit("mine")
	if _, err := w.assemble(Options{}); !errors.Is(err, ErrEdited) || !strings.Contains(err.Error(), "mine") {
		t.Errorf("error %v", err)
	}
}

func TestCancelledAssemblyLeavesACleanTree(t *testing.T) {
	w := newWorldWithPatches(t)
	w.editPatch("0002-api-add-a-field.patch", "Field int", "Field string")
	ctx, cancel := context.WithCancel(context.Background())
	w.gen.stop = cancel
	if _, err := w.assembly(Options{}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if status := w.git("status", "--porcelain"); status != "" {
		t.Errorf("left behind:\n%s", status)
	}
	w.gen.stop = nil
	w.mustAssemble()
}

func TestFailedGeneratorsLeaveThePatchesToEdit(t *testing.T) {
	w := newWorldWithPatches(t)
	w.editPatch("0002-api-add-a-field.patch", "Field int", "Field strin")
	w.gen.fail = errors.New("types.go: undefined: strin")
	_, err := w.assemble(Options{})
	if !errors.Is(err, w.gen.fail) {
		t.Fatalf("error %v", err)
	}
	if status := w.git("status", "--porcelain"); status != "" {
		t.Errorf("left behind:\n%s", status)
	}
	// The user corrects it in the tree, which podenv must treat as an edit.
	w.edit(fakeTypes, "strin", "string")
	if _, err := w.assemble(Options{}); !errors.Is(err, ErrEdited) {
		t.Errorf("error %v, want ErrEdited", err)
	}
	w.git("commit", "-q", "-a", "--amend", "--no-edit")
	w.mustWritePatches()
	w.gen.fail = nil
	w.mustAssemble()
	if got := w.git("show", "HEAD:"+fakeTypes); !strings.Contains(got, "Field string") {
		t.Errorf("the correction is lost:\n%s", got)
	}
}

func TestAssembleIgnoresLeftoversOfAKilledPodenv(t *testing.T) {
	w := newWorld(t)
	in, err := readInputs(w.series, false)
	w.ok(err)
	for _, dir := range []string{
		filepath.Join(w.layout.Cache("source"), "v1.33.13-"+in.release[:16]+".git.new"),
		filepath.Join(filepath.Dir(w.dir()), ".new-v1.33"),
	} {
		w.ok(os.MkdirAll(filepath.Join(dir, ".git"), 0o755))
		w.ok(os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("half"), 0o644))
	}
	w.mustAssemble()
	left, err := filepath.Glob(filepath.Join(w.layout.Output(), "*", "*", "*.new*"))
	w.ok(err)
	trees, err := filepath.Glob(w.layout.Tree(".new*"))
	w.ok(err)
	left = append(left, trees...)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestASecondAssemblyWaitsForTheFirst(t *testing.T) {
	w := newWorldWithPatches(t)
	unlock, err := w.assembly(Options{}).lock(context.Background())
	w.ok(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { _, err := w.assembly(Options{}).run(ctx); done <- err }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("with the tree locked: %v", err)
	}
	unlock()
	w.mustAssemble()
}

func TestOpenWaitsForAnAssembly(t *testing.T) {
	w := newWorldWithPatches(t)
	w.editPatch("0002-api-add-a-field.patch", "Field int", "Field string")
	halfWay, resume := make(chan struct{}), make(chan struct{})
	w.run = func(a *assembly) {
		key := a.gen.inputsKey
		a.gen.inputsKey = func(ctx context.Context, o codegen.Options) (string, error) {
			close(halfWay)
			<-resume
			return key(ctx, o)
		}
	}
	var assembled, opened *Tree
	var both errgroup.Group
	both.Go(func() (err error) {
		assembled, err = w.assemble(Options{})
		return err
	})
	<-halfWay
	both.Go(func() (err error) {
		resumeOnce := sync.OnceFunc(func() { close(resume) })
		defer resumeOnce()
		// Showing the step that says what it waits for lets the assembly continue.
		r := progress.New(writer(resumeOnce), true, 80, t.TempDir())
		opened, err = Open(t.Context(), w.layout, w.series, false, r)
		return err
	})
	w.ok(both.Wait())
	if opened.Dir != assembled.Dir || opened.Key != assembled.Key {
		t.Errorf("Open gave %+v, Assemble %+v", opened, assembled)
	}
}

type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }

func TestStateSurvivesAMovedRepository(t *testing.T) {
	w := newWorldWithHunks(t)
	breakPatch(w)
	_, err := w.assemble(Options{})
	conflictOf(t, err)
	moved := filepath.Join(t.TempDir(), "moved")
	w.ok(os.Rename(w.layout.Root, moved))
	w.layout.Root = moved
	w.load()
	_, err = w.assemble(Options{})
	if c := conflictOf(t, err); c.Dir != w.dir() {
		t.Errorf("the conflict is in %s, want %s", c.Dir, w.dir())
	}
	data, err := os.ReadFile(stateFile(w.dir()))
	w.ok(err)
	if !json.Valid(data) || strings.Contains(string(data), moved) {
		t.Errorf("the state names a path:\n%s", data)
	}
}
