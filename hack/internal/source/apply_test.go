package source

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"podenv.dev/hack/internal/gitrepo"
)

// breakPatch changes the old lines of the second hunk of the first patch, so that it does not apply.
func breakPatch(w *world) {
	w.Helper()
	w.editPatch("0001-kubelet-change-two-steps.patch", "-func Step30() int { return 30 }", "-func Step30() int { return 33 }")
}

// newWorldWithHunks has a patch with two hunks, and one after it.
func newWorldWithHunks(t testing.TB) *world {
	t.Helper()
	return copyOf(t, "two-hunks", func(w *world) {
		w.mustAssemble()
		w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return 1010 }")
		w.edit("pkg/kubelet/kubelet.go", "return 30 }", "return 3030 }")
		w.commit("kubelet: change two steps")
		w.edit(fakeTypes, "type Pod struct{}", "type Pod struct{ Field int }")
		w.addEnvfile()
		w.commit("api: add a field")
		w.mustWritePatches()
		w.mustAssemble()
	})
}

func conflictOf(t testing.TB, err error) *ConflictError {
	t.Helper()
	var c *ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("error %v, want a ConflictError", err)
	}
	return c
}

func TestConflictNamesPatchFileAndHunk(t *testing.T) {
	w := newWorldWithHunks(t)
	breakPatch(w)
	_, err := w.assemble(Options{})
	c := conflictOf(t, err)
	if c.Patch != "0001-kubelet-change-two-steps.patch" || c.File != "pkg/kubelet/kubelet.go" || c.Dir != w.dir() {
		t.Errorf("conflict in %q, file %q, tree %q", c.Patch, c.File, c.Dir)
	}
	lines := strings.Split(w.patches()[c.Patch], "\n")
	if !strings.HasPrefix(c.Hunk, "@@ -94,7 +94,7 @@") || c.Line < 1 || lines[c.Line-1] != c.Hunk {
		t.Errorf("hunk %q at line %d", c.Hunk, c.Line)
	}
	for _, want := range []string{
		c.Patch, c.File, c.Hunk, w.dir(), "v1.33.13",
		"git -C " + w.dir() + " am --continue", "podenv patches --series v1.33",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if _, err := os.Stat(w.dir() + "/.git/rebase-apply/patch"); err != nil {
		t.Errorf("the tree is not where git am stopped: %v", err)
	}
}

func TestConflictOfWholeFilesIsNamed(t *testing.T) {
	const mail = "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\nSubject: [PATCH] x\n\n"
	for name, c := range map[string]struct{ diff, file, reason string }{
		"a file that is missing": {
			"diff --git a/gone.go b/gone.go\nindex 0123456789012345678901234567890123456789..1123456789012345678901234567890123456789 100644\n--- a/gone.go\n+++ b/gone.go\n@@ -1 +1 @@\n-a\n+b\n",
			"gone.go", "does not exist in index"},
		"a new file that exists": {
			"diff --git a/pkg/kubelet/kubelet.go b/pkg/kubelet/kubelet.go\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..1123456789012345678901234567890123456789\n--- /dev/null\n+++ b/pkg/kubelet/kubelet.go\n@@ -0,0 +1 @@\n+b\n",
			"pkg/kubelet/kubelet.go", "already exists in index"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("patches/v1.33/0001-x.patch", mail+c.diff)
			_, err := w.assemble(Options{})
			got := conflictOf(t, err)
			if got.File != c.file || got.Reason != c.reason || got.Hunk != "" {
				t.Errorf("conflict in %q: %q, hunk %q", got.File, got.Reason, got.Hunk)
			}
		})
	}
}

func TestConflictStaysUntilItIsResolved(t *testing.T) {
	w := newWorldWithHunks(t)
	breakPatch(w)
	_, first := w.assemble(Options{})
	conflictOf(t, first)
	for name, call := range map[string]func() error{
		"Assemble":     func() error { _, err := w.assemble(Options{}); return err },
		"WritePatches": func() error { _, err := w.writePatches(); return err },
		"Open":         func() error { _, err := w.open(); return err },
	} {
		if err := call(); err == nil || err.Error() != first.Error() {
			t.Errorf("%s says:\n%v\nnot:\n%v", name, err, first)
		}
	}
	// Half-resolved: the same conflict, and the resolution so far stays.
	w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return 1010 }")
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // newer\n")
	_, err := w.assemble(Options{})
	if conflictOf(t, err); !strings.Contains(w.git("diff"), "1010") {
		t.Error("a half-resolved conflict was dropped")
	}
}

func TestResolvedConflictGoesOnWithTheTwoCommands(t *testing.T) {
	w := newWorldWithHunks(t)
	breakPatch(w)
	_, err := w.assemble(Options{})
	conflictOf(t, err)
	w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return 1010 }")
	w.edit("pkg/kubelet/kubelet.go", "return 30 }", "return 3131 }")
	w.git("add", "-A")
	w.git("am", "--continue")
	if _, err := w.assemble(Options{}); !errors.Is(err, ErrEdited) {
		t.Errorf("resolved but not written: %v, want ErrEdited", err)
	}
	changed := w.mustWritePatches()
	if len(changed) != 1 || !strings.Contains(w.patches()["0001-kubelet-change-two-steps.patch"], "3131") {
		t.Errorf("changed %v", changed)
	}
	w.mustAssemble()
	if got := w.git("show", "HEAD:"+fakeGenerated); strings.Contains(got, "stock") {
		t.Error("the generators did not run after the conflict")
	}
}

func TestConflictWithANewReleaseIsResolvedByTheCommandsOfItsError(t *testing.T) {
	for name, c := range map[string]struct{ prepare, resolve func(w *world) }{
		"with conflict markers, where the old files are known": {
			func(*world) {},
			func(w *world) {
				w.edit("pkg/kubelet/kubelet.go", "<<<<<<< ours\nfunc Step30() int { return 300 }\n=======\nfunc Step30() int { return 3030 }\n>>>>>>> theirs\n", "func Step30() int { return 3030 }\n")
			},
		},
		"with what is rejected, where they are not": {
			func(w *world) { w.removeMade() },
			func(w *world) {
				w.edit("pkg/kubelet/kubelet.go", "return 300 }", "return 3030 }")
				w.ok(os.Remove(w.dir() + "/pkg/kubelet/kubelet.go.rej"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithHunks(t)
			c.prepare(w)
			w.pin(clashing)
			_, err := w.assemble(Options{})
			conflictOf(t, err)
			commands := regexp.MustCompile(`git -C .*`).FindAllString(err.Error(), -1)
			if len(commands) != 2 {
				t.Fatalf("%d commands in\n%v", len(commands), err)
			}
			shell(commands[0]) // fails, for there is something to resolve
			c.resolve(w)
			if out, err := shell(commands[1]); err != nil {
				t.Fatalf("%s: %v\n%s", commands[1], err, out)
			}
			w.mustWritePatches()
			w.mustAssemble()
			if text, err := os.ReadFile(w.dir() + "/pkg/kubelet/kubelet.go"); err != nil || !strings.Contains(string(text), "return 3030 }") || !strings.Contains(string(text), clashing) {
				t.Errorf("kubelet.go: %v\n%s", err, text)
			}
			if status := w.git("status", "--porcelain"); status != "" {
				t.Errorf("status:\n%s", status)
			}
		})
	}
}

// shell runs a command line that a user pastes.
func shell(line string) (string, error) {
	cmd := exec.Command("sh", "-c", line)
	cmd.Env = append(os.Environ(), "GIT_EDITOR=true", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPatchWhoseOldLinesWereEditedIsResolvedByTheCommandsOfItsError(t *testing.T) {
	w := newWorldWithHunks(t)
	breakPatch(w)
	_, err := w.assemble(Options{})
	conflictOf(t, err)
	commands := regexp.MustCompile(`git -C .*`).FindAllString(err.Error(), -1)
	shell(commands[0]) //nolint:errcheck // it fails, for there is something to resolve
	if _, err := os.Stat(w.dir() + "/pkg/kubelet/kubelet.go.rej"); err != nil {
		t.Fatalf("%s left nothing to resolve: %v", commands[0], err)
	}
	w.ok(os.Remove(w.dir() + "/pkg/kubelet/kubelet.go.rej"))
	w.edit("pkg/kubelet/kubelet.go", "return 30 }", "return 3131 }")
	if out, err := shell(commands[1]); err != nil {
		t.Fatalf("%s: %v\n%s", commands[1], err, out)
	}
	w.mustWritePatches()
	w.mustAssemble()
}

func TestPatchCorrectedInsteadIsTriedAgain(t *testing.T) {
	w := newWorldWithHunks(t)
	want := w.git("rev-parse", "HEAD")
	good := w.patches()["0001-kubelet-change-two-steps.patch"]
	breakPatch(w)
	_, err := w.assemble(Options{})
	conflictOf(t, err)
	w.write("patches/v1.33/0001-kubelet-change-two-steps.patch", good)
	w.mustAssemble()
	w.wantRev("HEAD", want)
}

func TestAbandonedConflictIsTriedAgain(t *testing.T) {
	for name, abandon := range map[string]func(w *world) error{
		"by git am --abort": func(w *world) error { w.git("am", "--abort"); _, err := w.assemble(Options{}); return err },
		"by --discard":      func(w *world) error { _, err := w.assemble(Options{Discard: true}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithHunks(t)
			breakPatch(w)
			_, err := w.assemble(Options{})
			conflictOf(t, err)
			conflictOf(t, abandon(w))
		})
	}
}

func TestConflictInALaterPatchKeepsTheEarlierOnes(t *testing.T) {
	w := newWorldWithHunks(t)
	name := "0002-api-add-a-field.patch"
	w.editPatch(name, "-type Pod struct{}", "-type Pod struct {}")
	_, err := w.assemble(Options{})
	if c := conflictOf(t, err); c.Patch != name {
		t.Errorf("conflict in %s", c.Patch)
	}
	if got := w.subjects(); got[len(got)-1] != "kubelet: change two steps" {
		t.Errorf("commits %q", got)
	}
}

func TestMalformedPatchIsNamedAndTouchesNothing(t *testing.T) {
	for name, content := range map[string]string{
		"no mail":   "this is not a patch\n",
		"no change": "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.com>\nSubject: x\n\ntext\n",
		"cut off":   "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.com>\nSubject: x\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n-a\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			before := w.snapshot()
			w.write("patches/v1.33/0003-broken.patch", content)
			_, err := w.assemble(Options{})
			if err == nil || !strings.Contains(err.Error(), "0003-broken.patch") || !strings.Contains(err.Error(), "podenv patches") {
				t.Errorf("error %v", err)
			}
			if after := w.snapshot(); after != before {
				t.Errorf("the tree was touched:\n%s", after)
			}
		})
	}
}

func TestPatchWithWindowsLineEndingsApplies(t *testing.T) {
	w := newWorld(t)
	w.mustAssemble()
	w.edit("docs/windows.txt", "two\r\n", "2\r\n")
	w.commit("docs: a file with CRLF")
	w.mustWritePatches()
	w.reassemble()
	out, err := gitrepo.Repo{Dir: w.dir()}.Quiet(context.Background(), "show", "HEAD:docs/windows.txt")
	w.ok(err)
	if out != "one\r\n2\r\nthree\r" && out != "one\r\n2\r\nthree\r\n" {
		t.Errorf("windows.txt is %q", out)
	}
}
