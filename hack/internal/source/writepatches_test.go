package source

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/gitrepo"
)

func TestRoundTripIsByteIdentical(t *testing.T) {
	w := newWorldWithPatches(t)
	patches, head := w.patches(), w.git("rev-parse", "HEAD")
	if changed := w.mustWritePatches(); len(changed) > 0 {
		t.Errorf("writing an assembled tree's patches changed %v", changed)
	}
	// Reassembled from the files, and written back to an empty folder.
	w.reassemble()
	w.wantRev("HEAD", head)
	removeAll(w, "*.patch")
	w.mustWritePatches()
	if diff := cmp.Diff(patches, w.patches()); diff != "" {
		t.Errorf("tree -> patches -> tree -> patches (-want +got):\n%s", diff)
	}
}

func TestRoundTripKeepsEveryKindOfChange(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a new file":              func(w *world) { w.edit("pkg/new.go", "", "package pkg\n") },
		"an empty file":           func(w *world) { w.edit("pkg/empty", "", "") },
		"a deleted file":          func(w *world) { w.ok(os.Remove(filepath.Join(w.dir(), "docs/windows.txt"))) },
		"a moved file":            func(w *world) { w.git("mv", "docs/windows.txt", "docs/w.txt") },
		"an executable file":      func(w *world) { w.ok(os.Chmod(filepath.Join(w.dir(), "go.mod"), 0o755)) },
		"a binary file":           func(w *world) { w.edit("logo.png", "", "\x00\x01\xff\r\n") },
		"CRLF line endings":       func(w *world) { w.edit("docs/windows.txt", "two\r\n", "2\r\n") },
		"no newline at the end":   func(w *world) { w.edit("docs/with space and ü.md", "text\n", "text") },
		"trailing white space":    func(w *world) { w.edit("pkg/a.go", "", "package a  \n\n\n") },
		"a line like a signature": func(w *world) { w.edit("pkg/a.txt", "", "-- \n2.39.5\n") },
		"a line like a mail":      func(w *world) { w.edit("pkg/a.txt", "", "From me\n\n--- a/x\n+++ b/x\n") },
		"a symbolic link":         func(w *world) { w.ok(os.Symlink("kubelet", filepath.Join(w.dir(), "pkg/link"))) },
		"a file that git ignores": func(w *world) { w.edit("pkg/a.swp", "", "x\n"); w.git("add", "-f", "pkg/a.swp") },
		"a path to be quoted":     func(w *world) { w.edit("pkg/tab\tand \"ü\".txt", "", "x\n") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			change(w)
			w.commit("change: " + name)
			want := w.git("rev-parse", "HEAD^{tree}")
			w.mustWritePatches()
			patches := w.patches()
			if len(patches) != 3 {
				t.Fatalf("%d patches", len(patches))
			}
			w.reassemble()
			if got := w.git("rev-parse", "HEAD^{tree}"); got != want {
				t.Errorf("the tree differs:\n%s", w.git("diff", "--stat", want, "HEAD"))
			}
			if changed := w.mustWritePatches(); len(changed) > 0 {
				t.Errorf("patches changed by a round trip: %v", changed)
			}
		})
	}
}

func TestRoundTripKeepsMessages(t *testing.T) {
	for name, message := range map[string]string{
		"a subject in brackets":   "[kubelet] read a file",
		"a body":                  "kubelet: read\n\nA body.\n\n  indented\n\nSigned-off-by: Ada <ada@example.com>",
		"letters beyond ASCII":    "kubelet: Größe in µs\n\nÄ body.",
		"a very long subject":     "kubelet: " + strings.Repeat("word ", 40) + "end",
		"a body with a From line": "kubelet: read\n\nReads\nFrom here\nand >From there.\n\nFrom: is a word",
		"bullets and dashes":      "kubelet: read\n\n- one\n-- two\n* three",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.mustAssemble()
			w.edit("pkg/new.go", "", "package pkg\n")
			w.commit(message)
			w.mustWritePatches()
			w.mustAssemble()
			if got := w.git("log", "-1", "--format=%B"); strings.TrimSpace(got) != message {
				t.Errorf("the message came back as %q, was %q", got, message)
			}
		})
	}
}

func TestPatchFileHasNothingOfTheMachine(t *testing.T) {
	w := newWorldWithPatches(t)
	const want = `From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: Ada <ada@example.com>
Date: DATE
Subject: [PATCH] api: add a field


diff --git a/staging/src/k8s.io/api/core/v1/types.go b/staging/src/k8s.io/api/core/v1/types.go
index 985ca6e3e0d6a8a3fea9ea9d1a3d1a5b8d4d9ff5..DIFFERS 100644
--- a/staging/src/k8s.io/api/core/v1/types.go
+++ b/staging/src/k8s.io/api/core/v1/types.go
@@ -1,4 +1,4 @@
 package v1
 
 // Pod is a pod.
-type Pod struct{}
+type Pod struct{ Field int }
`
	got := w.patches()["0002-api-add-a-field.patch"]
	mask := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			switch {
			case strings.HasPrefix(line, "Date: "):
				lines[i] = "Date:"
			case strings.HasPrefix(line, "index "):
				if len(line) > 90 || strings.Contains(line, "DIFFERS") {
					lines[i] = "index in full"
				}
			}
		}
		return strings.Join(lines, "\n")
	}
	if diff := cmp.Diff(mask(want), strings.TrimRight(mask(got), "\n")+"\n"); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}

func TestPatchesDoNotDependOnAPersonsConfiguration(t *testing.T) {
	w := newWorldWithPatches(t)
	want := w.patches()
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "gitconfig"))
	w.ok(os.WriteFile(os.Getenv("GIT_CONFIG_GLOBAL"), []byte("[diff]\nnoprefix = true\ncontext = 9\nalgorithm = patience\n[format]\nsignature = mine\nnumbered = true\nthread = true\nheaders = \"X-A: b\\n\"\n[core]\nabbrev = 7\n"), 0o644))
	w.git("config", "diff.algorithm", "histogram") // the tree's own configuration is a person's too
	w.git("config", "diff.mnemonicPrefix", "true")
	removeAll(w, "*.patch")
	w.mustWritePatches()
	if diff := cmp.Diff(want, w.patches()); diff != "" {
		t.Errorf("patches (-want +got):\n%s", diff)
	}
}

func TestPersonsCommitsBecomePatches(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/apis/core/types.go", "type Pod struct{}", "type Pod struct{ Mine int }")
	w.commit("core: mine")
	got := w.mustWritePatches()
	if want := []string{"patches/v1.33/0003-core-mine.patch"}; !slices.Equal(got, want) {
		t.Errorf("wrote %v, want %v", got, want)
	}
	w.mustAssemble()
	want := []string{"Kubernetes v1.33.13", "kubelet: change step 10", "api: add a field", "core: mine", "Update generated code"}
	if diff := cmp.Diff(want, w.subjects()); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
}

func TestGeneratedCodeIsInNoPatch(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/apis/core/types.go", "type Pod struct{}", "type Pod struct{ Mine int }")
	w.edit("pkg/apis/core/zz_generated.go", "stock", "mine")
	w.edit("pkg/apis/core/zz_generated.more.go", "", "package core\n")
	w.commit("core: mine, with its generated code")
	w.edit("pkg/apis/core/zz_generated.go", "mine", "again")
	w.commit("core: generated again")
	w.mustWritePatches()
	names := slices.Sorted(maps.Keys(w.patches()))
	if want := []string{"0001-kubelet-change-step-10.patch", "0002-api-add-a-field.patch", "0003-core-mine-with-its-generated-code.patch"}; !slices.Equal(names, want) {
		t.Errorf("patches %v, want %v", names, want)
	}
	for name, text := range w.patches() {
		if strings.Contains(text, "zz_generated") {
			t.Errorf("%s has generated code:\n%s", name, text)
		}
	}
}

func TestReorderedAndDroppedCommitsRenameTheFiles(t *testing.T) {
	w := newWorldWithPatches(t)
	w.git("reset", "-q", "--hard", "HEAD~3")
	w.git("cherry-pick", "podenv@{1}~1")
	got := w.mustWritePatches()
	want := []string{"patches/v1.33/0001-api-add-a-field.patch", "patches/v1.33/0001-kubelet-change-step-10.patch", "patches/v1.33/0002-api-add-a-field.patch", "pkg/kubelet/envfile/envfile.go"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("changed %v, want %v", got, want)
	}
	if names := slices.Sorted(maps.Keys(w.patches())); !slices.Equal(names, []string{"0001-api-add-a-field.patch"}) {
		t.Errorf("patches %v", names)
	}
	w.mustAssemble()
}

func TestEditsOfNewFilesGoBackToTheirModule(t *testing.T) {
	const file = "pkg/kubelet/envfile/envfile.go"
	for name, c := range map[string]struct {
		do   func(w *world)
		want map[string]string // files of the repository afterwards; "" is gone
	}{
		"changed": {func(w *world) { w.edit(file, "", "package envfile // tree\n") }, map[string]string{file: "package envfile // tree\n"}},
		"added beside": {func(w *world) { w.edit("pkg/kubelet/envfile/testdata/a", "", "a\n") },
			map[string]string{file: "package envfile\n", "pkg/kubelet/envfile/testdata/a": "a\n"}},
		"deleted": {func(w *world) { w.ok(os.Remove(filepath.Join(w.dir(), file))) }, map[string]string{file: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			c.do(w)
			w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
			w.commit("kubelet: mine")
			changed := w.mustWritePatches()
			for path, want := range c.want {
				got, err := os.ReadFile(filepath.Join(w.layout.Root, path))
				if string(got) != want || os.IsNotExist(err) != (want == "") {
					t.Errorf("%s is %q (%v), want %q", path, got, err, want)
				}
			}
			if !slices.ContainsFunc(changed, func(p string) bool { return strings.HasPrefix(p, "pkg/kubelet/envfile/") }) {
				t.Errorf("the report %v has no new file", changed)
			}
			if text := w.patches()["0003-kubelet-mine.patch"]; strings.Contains(text, "b/pkg/kubelet/envfile") != (name == "deleted") || !strings.Contains(text, "2020") {
				t.Errorf("patch:\n%s", text)
			}
			w.mustAssemble()
			if status := w.git("status", "--porcelain"); status != "" {
				t.Errorf("status:\n%s", status)
			}
		})
	}
}

func TestNewFileEditedInBothPlacesIsRefused(t *testing.T) {
	w := newWorldWithPatches(t)
	before := w.patches()
	w.edit("pkg/kubelet/envfile/envfile.go", "", "package envfile // tree\n")
	w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
	w.commit("kubelet: mine")
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // repository\n")
	_, err := w.writePatches()
	if err == nil || !strings.Contains(err.Error(), "pkg/kubelet/envfile/envfile.go was edited both") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(before, w.patches()); diff != "" {
		t.Errorf("patches were written:\n%s", diff)
	}
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // tree\n")
	w.mustWritePatches()
}

func TestHistoriesThatPatchesCannotHoldAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world)
		want string
	}{
		"a merge": {func(w *world) {
			w.git("checkout", "-q", "-b", "side", "HEAD~1")
			w.edit("side.txt", "", "x\n")
			w.commit("side")
			w.git("merge", "-q", "--no-edit", "podenv")
		}, "is a merge"},
		"a fixup that waits": {func(w *world) { w.edit("x.txt", "", "x\n"); w.commit("fixup! api: add a field") }, "not squashed yet"},
		"an edit amended onto generated code": {func(w *world) {
			w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
			w.git("commit", "-q", "-a", "--amend", "--no-edit")
		}, "also changes pkg/kubelet/kubelet.go"},
		"a message that git am would cut":               {func(w *world) { w.edit("x.txt", "", "x\n"); w.commit("x\n\nabove\n---\nbelow") }, `has the line "---"`},
		"a message that git am would read as an author": {func(w *world) { w.edit("x.txt", "", "x\n"); w.commit("x\n\nFrom: afar") }, `starts with "From: afar"`},
		"another root": {func(w *world) {
			w.git("checkout", "-q", "--orphan", "other")
			w.git("commit", "-q", "-m", "other")
		}, "is not based on the commit of a release"},
		"an amended release": {func(w *world) {
			w.git("checkout", "-q", w.git("rev-list", "--max-parents=0", "HEAD"))
			w.edit("x.txt", "", "x\n")
			w.git("add", "-A")
			w.git("commit", "-q", "--amend", "--no-edit")
		}, "is not the one that podenv made"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			before := w.patches()
			c.do(w)
			_, err := w.writePatches()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if diff := cmp.Diff(before, w.patches()); diff != "" {
				t.Errorf("patches were written:\n%s", diff)
			}
		})
	}
}

func TestNewerPatchesAreNotOverwritten(t *testing.T) {
	for name, c := range map[string]struct{ file, content string }{
		"a patch pulled from someone else": {"0003-theirs.patch", "theirs"},
		"a patch edited by hand":           {"0002-api-add-a-field.patch", "edited"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
			w.git("commit", "-q", "-a", "-m", "mine")
			w.write("patches/v1.33/"+c.file, c.content)
			before := w.patches()
			if _, err := w.writePatches(); err == nil || !strings.Contains(err.Error(), "patch files have changed") || !strings.Contains(err.Error(), c.file) {
				t.Errorf("error %v, want one that names %s", err, c.file)
			}
			if diff := cmp.Diff(before, w.patches()); diff != "" {
				t.Errorf("patches were written:\n%s", diff)
			}
			w.ok(os.Remove(filepath.Join(w.series.Dir, c.file)))
			w.mustWritePatches()
		})
	}
}

func TestUncommittedChangesAreNotWritten(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
	_, err := w.writePatches()
	if err == nil || !strings.Contains(err.Error(), "not committed") || !strings.Contains(err.Error(), "pkg/kubelet/kubelet.go") || !strings.Contains(err.Error(), "add --all && git") {
		t.Errorf("error %v", err)
	}
}

func TestPatchesWithoutATree(t *testing.T) {
	w := newWorld(t)
	if _, err := w.writePatches(); !errors.Is(err, ErrNoTree) || !strings.Contains(err.Error(), "podenv tree") {
		t.Errorf("error %v", err)
	}
}

func TestExportAppliesToAPristineTree(t *testing.T) {
	w := newWorldWithPatches(t)
	out := filepath.Join(t.TempDir(), "made", "export")
	for range 2 { // a second export replaces the first
		files, err := w.assembly(Options{}).exportTree(context.Background(), out, false)
		w.ok(err)
		var names []string
		for _, f := range files {
			names = append(names, filepath.Base(f))
		}
		want := []string{"0001-kubelet-change-step-10.patch", "0002-api-add-a-field.patch", "0003-Update-generated-code.patch"}
		if !slices.Equal(names, want) {
			t.Fatalf("exported %v, want %v", names, want)
		}
	}
	stock, err := w.assemble(Options{Stock: true})
	w.ok(err)
	files, err := filepath.Glob(filepath.Join(out, "*.patch"))
	w.ok(err)
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "am", "-q"}, files...)...)
	cmd.Dir = stock.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git am: %v\n%s", err, out)
	}
	got, err := gitrepo.Repo{Dir: stock.Dir}.Quiet(context.Background(), "rev-parse", "HEAD^{tree}")
	w.ok(err)
	if want := w.git("rev-parse", "HEAD^{tree}"); got != want {
		t.Errorf("the export gives the tree %s, the series %s", got, want)
	}
}

func TestExportFoldsGeneratedCodeIntoItsPatch(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/apis/core/types.go", "type Pod struct{}", "type Pod struct{ Mine int }")
	w.commit("core: mine")
	w.mustWritePatches()
	w.mustAssemble()
	out := filepath.Join(t.TempDir(), "export")
	files, err := w.assembly(Options{}).exportTree(context.Background(), out, true)
	w.ok(err)
	var has []string // the patches with generated code
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.ok(err)
		if strings.Contains(string(data), "b/"+fakeGenerated) {
			has = append(has, filepath.Base(file))
		}
	}
	if len(files) != 3 || !slices.Equal(has, []string{"0002-api-add-a-field.patch"}) {
		t.Errorf("of %v these have generated code: %v", files, has)
	}
	stock, err := w.assemble(Options{Stock: true})
	w.ok(err)
	w.inTree(stock.Dir, append([]string{"am", "-q"}, files...)...)
	if got := w.inTree(stock.Dir, "rev-parse", "HEAD^{tree}"); got[0] != w.git("rev-parse", "HEAD^{tree}") {
		t.Errorf("the export gives the tree %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(w.dir()), ".fold-*")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestExportRefusesAForeignFolder(t *testing.T) {
	w := newWorldWithPatches(t)
	out := t.TempDir()
	w.ok(os.WriteFile(filepath.Join(out, "thesis.txt"), nil, 0o644))
	if _, err := w.assembly(Options{}).exportTree(context.Background(), out, false); err == nil || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(out, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	w := newWorldWithPatches(t)
	w.edit("pkg/new.go", "", "package pkg\n")
	w.commit("mine")
	w.edit("pkg/more.go", "", "package pkg\n")
	a := w.assembly(Options{})
	got, err := a.describe(context.Background())
	w.ok(err)
	for i := range got.Commits {
		got.Commits[i].ID = ""
	}
	want := &Status{
		Dir: w.dir(), Release: "Kubernetes v1.33.13", UpToDate: true, Dirty: []string{"pkg/more.go"},
		Commits: []Commit{
			{Subject: "kubelet: change step 10", Kind: "patch", InSeries: true},
			{Subject: "api: add a field", Kind: "patch", InSeries: true},
			{Subject: "Update generated code", Kind: "generated", InSeries: true},
			{Subject: "mine", Kind: "patch"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}
