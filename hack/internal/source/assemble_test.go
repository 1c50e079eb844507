package source

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/gitrepo"
)

func TestStockTreeIsTheReleaseAlone(t *testing.T) {
	w := newWorldWithPatches(t)
	tree, err := w.assemble(Options{Stock: true})
	w.ok(err)
	if tree.Name() != "v1.33-stock" || tree.Dir != w.layout.Tree("v1.33-stock") {
		t.Errorf("the stock tree is %s in %s", tree.Name(), tree.Dir)
	}
	out, err := gitrepo.Repo{Dir: tree.Dir}.Lines(context.Background(), "log", "--format=%s %ad %ae %ce")
	w.ok(err)
	want := []string{"Kubernetes v1.33.13 Thu Jun 11 16:59:07 2026 +0000 podenv@podenv.dev podenv@podenv.dev"}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
}

func TestTreeIsLaidOutAsKubernetesIs(t *testing.T) {
	w := newWorld(t)
	tree := w.mustAssemble()
	for path, want := range map[string]string{
		"go.mod":  "module k8s.io/kubernetes\n\ngo 1.24.0\n\nrequire k8s.io/api v0.33.13\n\nreplace k8s.io/api => ./staging/src/k8s.io/api\n",
		"go.work": "go 1.24.0\n\nuse (\n\t.\n\t./staging/src/k8s.io/api\n)\n",
		"staging/src/k8s.io/api/core/v1/types.go": "package v1\n\n// Pod is a pod.\ntype Pod struct{}\n",
		"docs/windows.txt":                        "one\r\ntwo\r\nthree\r\n",
		"docs/with space and ü.md":                "text\n",
	} {
		got, err := os.ReadFile(filepath.Join(tree.Dir, path))
		w.ok(err)
		if string(got) != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if _, err := os.Stat(filepath.Join(tree.Dir, "vendor")); !os.IsNotExist(err) {
		t.Errorf("there is a vendor folder, and go will look for packages there: %v", err)
	}
	if info, err := os.Stat(filepath.Join(tree.Dir, "hack/update.sh")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("hack/update.sh cannot be run: %v %v", info.Mode(), err)
	}
	if status := w.git("status", "--porcelain", "--ignored"); status != "" {
		t.Errorf("a fresh tree is not clean:\n%s", status)
	}
}

func TestCommitsStandInOrder(t *testing.T) {
	w := newWorldWithPatches(t)
	want := []string{"Kubernetes v1.33.13", "kubelet: change step 10", "api: add a field", "Update generated code"}
	if diff := cmp.Diff(want, w.subjects()); diff != "" {
		t.Errorf("commits (-want +got):\n%s", diff)
	}
	author := w.git("log", "-1", "--format=%an %ae %cn", "HEAD^")
	if author != "Ada ada@example.com podenv authors" {
		t.Errorf("a patch's commit is by %q", author)
	}
}

func TestSameInputsGiveSameCommitsEverywhere(t *testing.T) {
	w := newWorldWithPatches(t)
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(t.TempDir(), "gitconfig"))
	w.ok(os.WriteFile(os.Getenv("GIT_CONFIG_GLOBAL"), []byte("[diff]\nnoprefix = true\n[core]\nautocrlf = true\n[commit]\ngpgsign = true\n[am]\nthreeWay = true\n"), 0o644))
	t.Setenv("TZ", "Asia/Tokyo")
	other := &world{TB: t, layout: w.layout, series: w.series, gen: &fakeGenerator{}}
	other.layout.Root = filepath.Join(t.TempDir(), "elsewhere")
	w.ok(os.CopyFS(other.layout.Root, os.DirFS(w.layout.Root)))
	other.removeMade()
	other.load()
	other.mustAssemble()
	if a, b := w.git("rev-parse", "HEAD"), other.git("rev-parse", "HEAD"); a != b {
		t.Errorf("the same inputs gave %s here and %s there", a, b)
	}
}

func TestGitOfACallingHookIsNotTouched(t *testing.T) {
	w := newWorldWithPatches(t)
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "of-the-hook"))
	}
	w.removeMade()
	if _, err := w.assemble(Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(os.Getenv("GIT_INDEX_FILE")); !os.IsNotExist(err) {
		t.Errorf("the hook's index was written: %v", err)
	}
}

func TestUnchangedInputsCostNothing(t *testing.T) {
	w := newWorldWithPatches(t)
	runs := w.gen.runs
	before := w.git("reflog", "--format=%H")
	first, second := w.mustAssemble(), w.mustAssemble()
	if first.Key != second.Key || first.Key == "" {
		t.Errorf("keys %q and %q", first.Key, second.Key)
	}
	if after := w.git("reflog", "--format=%H"); after != before || w.gen.runs != runs {
		t.Errorf("the tree was made again: %d runs of the generators, reflog\n%s", w.gen.runs-runs, after)
	}
}

func TestKeyChangesWithEveryInput(t *testing.T) {
	changes := map[string]func(w *world){
		"a new file's content": func(w *world) { w.write("pkg/kubelet/envfile/envfile.go", "package envfile // changed\n") },
		"a new file more": func(w *world) {
			w.write("pkg/kubelet/envfile/more.go", "package envfile\n")
			w.editPatch("0001-kubelet-change-step-10.patch", "New-File: ", "New-File: pkg/kubelet/envfile/more.go\nNew-File: ")
		},
		"a patch's content": func(w *world) { w.editPatch("0002-api-add-a-field.patch", "Field int", "Field string") },
		"a patch less":      func(w *world) { w.ok(os.Remove(filepath.Join(w.series.Dir, "0002-api-add-a-field.patch"))) },
		"the release":       func(w *world) { w.pin("v1.33.14") },
		"the generators": func(w *world) {
			w.run = func(a *assembly) {
				a.gen.inputsKey = func(context.Context, codegen.Options) (string, error) { return "newer", nil }
			}
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			before := w.mustAssemble()
			change(w)
			after := w.mustAssemble()
			if before.Key == after.Key {
				t.Errorf("the key stayed %s", after.Key)
			}
		})
	}
}

func TestTreeBroughtUpToDateIsTheReassembledTree(t *testing.T) {
	changes := map[string]func(w *world){
		"after an edited first patch": func(w *world) {
			w.editPatch("0001-kubelet-change-step-10.patch", "1010", "2020")
		},
		"after an edited new file":  func(w *world) { w.write("pkg/kubelet/envfile/envfile.go", "package envfile\n\n// New.\n") },
		"after another release":     func(w *world) { w.pin("v1.33.14") },
		"without patches":           func(w *world) { removeAll(w, "*.patch") },
		"without its newer changes": func(w *world) { removeAll(w, "0002*.patch") },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			change(w)
			w.mustAssemble()
			updated := w.git("rev-parse", "HEAD")
			w.reassemble()
			w.wantRev("HEAD", updated)
		})
	}
}

func removeAll(w *world, pattern string) {
	files, err := filepath.Glob(filepath.Join(w.series.Dir, pattern))
	w.ok(err)
	for _, f := range files {
		w.ok(os.Remove(f))
	}
}

func TestUpdateLeavesOtherFilesAlone(t *testing.T) {
	w := newWorldWithPatches(t)
	before, err := os.Stat(filepath.Join(w.dir(), "pkg/apis/core/types.go"))
	w.ok(err)
	w.write("pkg/kubelet/envfile/envfile.go", "package envfile // changed\n")
	w.mustAssemble()
	after, err := os.Stat(filepath.Join(w.dir(), "pkg/apis/core/types.go"))
	w.ok(err)
	if !before.ModTime().Equal(after.ModTime()) {
		t.Error("a file that no input changed was written again")
	}
}

func TestGeneratorsRunOnlyForTheirInputs(t *testing.T) {
	w := newWorldWithPatches(t)
	runs := w.gen.runs
	w.editPatch("0001-kubelet-change-step-10.patch", "1010", "2020")
	w.mustAssemble()
	if w.gen.runs != runs {
		t.Errorf("a patch of the kubelet made the generators run")
	}
	if got := w.git("show", "HEAD:"+fakeGenerated); !strings.Contains(got, "hash:") || strings.Contains(got, "stock") {
		t.Errorf("the generated code got lost:\n%s", got)
	}
	w.editPatch("0002-api-add-a-field.patch", "Field int", "Field string")
	w.mustAssemble()
	if w.gen.runs != runs+1 {
		t.Errorf("a patch of the API made the generators run %d times", w.gen.runs-runs)
	}
}

func TestGeneratorsMayDeleteAFileOfTheRelease(t *testing.T) {
	const deleted = "pkg/apis/core/zz_generated.go"
	w := newWorldWithPatches(t)
	w.removeMade()
	w.gen.stop = func() { w.ok(os.Remove(filepath.Join(w.dir(), deleted))) }
	for _, code := range []string{"generated", "kept from an earlier run"} {
		w.mustAssemble()
		if got := w.git("diff", "--name-status", "release", "HEAD", "--", deleted); got != "D\t"+deleted {
			t.Errorf("%s: git diff shows %q, want the file deleted", code, got)
		}
		w.ok(os.RemoveAll(w.dir()))
	}
	if w.gen.runs != 1 {
		t.Errorf("the generators ran %d times, want once", w.gen.runs)
	}
}

func TestGeneratorsMayWriteOnlyGeneratedCode(t *testing.T) {
	w := newWorldWithPatches(t)
	w.removeMade()
	w.gen.also = "pkg/kubelet/left.go"
	_, err := w.assemble(Options{})
	if err == nil || !strings.Contains(err.Error(), "pkg/kubelet/left.go") {
		t.Errorf("error %v", err)
	}
}

func TestNewFilesKeepContentAndMode(t *testing.T) {
	w := newWorld(t)
	w.write("pkg/a/testdata/data.txt", "\r\nÄ")
	w.write("pkg/a/empty", "")
	w.write("pkg/a/run.sh", "#!/bin/sh\n")
	w.ok(os.Chmod(filepath.Join(w.layout.Root, "pkg/a/run.sh"), 0o755))
	paths := []string{"pkg/a/empty", "pkg/a/run.sh", "pkg/a/testdata/data.txt"}
	w.write("patches/v1.33/0001-a.patch", "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: Ada <ada@example.com>\nDate: Sat, 21 Nov 2026 04:17:24 +0000\nSubject: [PATCH] a\n\nNew-File: "+strings.Join(paths, "\nNew-File: ")+"\n\n")
	w.mustAssemble()
	if got := strings.Fields(w.git("diff-tree", "-r", "--no-commit-id", "--name-only", "HEAD")); !slices.Equal(got, paths) {
		t.Errorf("new files %v, want %v", got, paths)
	}
	if mode := w.git("ls-tree", "HEAD", "pkg/a/run.sh"); !strings.HasPrefix(mode, "100755") {
		t.Errorf("run.sh is committed as %q", mode)
	}
	if data, err := os.ReadFile(filepath.Join(w.dir(), "pkg/a/testdata/data.txt")); err != nil || string(data) != "\r\nÄ" {
		t.Errorf("data.txt is %q, %v", data, err)
	}
}

func TestOpen(t *testing.T) {
	w := newWorld(t)
	if _, err := w.open(); !errors.Is(err, ErrNoTree) || !strings.Contains(err.Error(), "podenv tree --series v1.33") {
		t.Errorf("without a tree: %v", err)
	}
	made := w.mustAssemble()
	w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return 11 }")
	tree, err := w.open()
	w.ok(err)
	if tree.Dir != made.Dir || tree.Key != made.Key {
		t.Errorf("Open gave %+v, Assemble %+v", tree, made)
	}
}
