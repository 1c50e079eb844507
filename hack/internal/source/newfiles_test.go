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

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/series"
)

// joins is a new file that joins a package of the release.
const joins = "pkg/kubelet/joins.go"

// newWorldWithNewFile has a patch that connects a new file, and one of new files only.
func newWorldWithNewFile(t testing.TB) *world {
	t.Helper()
	return copyOf(t, "new-files", func(w *world) {
		w.mustAssemble()
		w.edit("pkg/kubelet/kubelet.go", "return 10 }", "return Joins() }")
		w.edit(joins, "", "package kubelet\n\n// Joins joins.\nfunc Joins() int { return 10 }\n")
		w.commit("kubelet: join\n\nFor a test.")
		w.edit("pkg/kubelet/joins_test.go", "", "package kubelet\n")
		w.edit("hack/run.sh", "", "#!/bin/sh\n")
		w.ok(os.Chmod(filepath.Join(w.dir(), "hack/run.sh"), 0o755))
		w.commit("kubelet: test")
		w.mustWritePatches()
		w.mustAssemble()
	})
}

// read returns the content of a file of the repository; empty if it does not exist.
func (w *world) read(path string) string {
	data, err := os.ReadFile(filepath.Join(w.layout.Root, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return string(data)
}

func TestPatchesNameTheirNewFiles(t *testing.T) {
	w := newWorldWithNewFile(t)
	patches, tree := w.patches(), w.git("rev-parse", "HEAD^{tree}")
	join, test := patches["0001-kubelet-join.patch"], patches["0002-kubelet-test.patch"]
	if !strings.Contains(join, "For a test.\n\nNew-File: "+joins+"\n\ndiff --git a/pkg/kubelet/kubelet.go") || strings.Contains(join, "func Joins") {
		t.Errorf("the patch is\n%s", join)
	}
	if !strings.HasSuffix(test, "\n\nNew-File: hack/run.sh\nNew-File: pkg/kubelet/joins_test.go\n\n") {
		t.Errorf("the patch of new files only is\n%s", test)
	}
	if got := w.read("patches/new/" + joins); !strings.Contains(got, "func Joins() int { return 10 }") {
		t.Errorf("the new file is %q", got)
	}
	if info, err := os.Stat(filepath.Join(w.layout.Root, "patches/new/hack/run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the script is %v, %v", info, err)
	}
	if got := w.git("log", "--format=%B", "HEAD"); strings.Contains(got, "New-File") {
		t.Errorf("the commits of the tree say\n%s", got)
	}
	if changed := w.mustWritePatches(); len(changed) > 0 {
		t.Errorf("writing the patches of an assembled tree changed %v", changed)
	}
	w.reassemble()
	w.wantRev("HEAD^{tree}", tree)
	w.ok(series.CheckNewFiles(w.layout))
}

func TestExportedPatchesAreWhole(t *testing.T) {
	w := newWorldWithNewFile(t)
	files, err := w.assembly(Options{}).exportTree(context.Background(), filepath.Join(t.TempDir(), "export"), false)
	w.ok(err)
	var text string
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.ok(err)
		text += string(data)
	}
	if !strings.Contains(text, "+func Joins() int") || strings.Contains(text, "New-File") {
		t.Errorf("the export is\n%s", text)
	}
}

func TestExpandAndSplitAreInverse(t *testing.T) {
	for name, content := range map[string]string{
		"text": "a\nb\n", "empty": "", "one line": "a\n", "no newline at the end": "a\nb", "CRLF": "a\r\nb\r\n",
		"like a patch": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-- \n", "like a trailer": "New-File: x\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithPatches(t)
			w.edit("pkg/a.go", "", content)
			w.edit("pkg/kubelet/kubelet.go", "return 20 }", "return 2020 }")
			w.edit("z", "", content)
			w.commit("add " + name)
			_, full, err := (repo{gitrepo.Repo{Dir: w.dir()}}).formatPatch(t.Context(), "HEAD", 1, nil)
			w.ok(err)
			added := []string{"pkg/a.go", "z"}
			stored, empty := split(full, func(path string) bool { return slices.Contains(added, path) }, added)
			if empty || strings.Contains(string(stored), "b/pkg/a.go") {
				t.Errorf("split gives\n%s", stored)
			}
			a, err := readIfExists(w.dir(), "pkg/a.go")
			w.ok(err)
			z, err := readIfExists(w.dir(), "z")
			w.ok(err)
			if diff := cmp.Diff(string(full), string(expand(stored, []newFile{*a, *z}))); diff != "" {
				t.Errorf("expand(split(patch)) (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEditsOfANewFileAreWrittenToItsFolder(t *testing.T) {
	for name, c := range map[string]struct {
		own  bool
		want string // where the edit goes
	}{
		"common":          {false, "patches/new/" + joins},
		"of this one own": {true, "patches/v1.33/new/" + joins},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithNewFile(t)
			if c.own {
				w.write(c.want, "package kubelet\n\nfunc Joins() int { return 33 }\n")
				w.mustAssemble()
			}
			common := w.read("patches/new/" + joins)
			w.edit(joins, "return ", "return 10 * ")
			w.commit("kubelet: ten times")
			changed := w.mustWritePatches()
			if !slices.Equal(changed, []string{c.want}) {
				t.Errorf("wrote %v, want %s", changed, c.want)
			}
			if got := w.read(c.want); !strings.Contains(got, "return 10 * ") {
				t.Errorf("%s is %q", c.want, got)
			}
			if c.own && w.read("patches/new/"+joins) != common {
				t.Error("the common form has changed too")
			}
			if len(w.notes) != 1 || !strings.Contains(w.notes[0], "(kubelet: ten times)") || !strings.Contains(w.notes[0], "is no patch") {
				t.Errorf("the notes are %q", w.notes)
			}
			tree := w.git("rev-parse", "HEAD^{tree}")
			w.mustAssemble()
			w.wantRev("HEAD^{tree}", tree)
			// The next edit goes there too.
			w.edit(joins, "10 * ", "11 * ")
			w.git("commit", "-qam", "eleven")
			w.mustWritePatches()
			w.edit(joins, "11 * ", "12 * ")
			w.git("commit", "-qam", "twelve")
			if w.mustWritePatches(); !strings.Contains(w.read(c.want), "12 * ") {
				t.Errorf("%s is %q", c.want, w.read(c.want))
			}
		})
	}
}

func TestADeletedNewFileGoes(t *testing.T) {
	w := newWorldWithNewFile(t)
	w.ok(os.Remove(filepath.Join(w.dir(), "pkg/kubelet/joins_test.go")))
	w.commit("kubelet: no test")
	w.mustWritePatches()
	w.mustAssemble()
	if got := w.read("patches/new/pkg/kubelet/joins_test.go"); got != "" {
		t.Errorf("the file is still %q", got)
	}
	w.ok(series.CheckNewFiles(w.layout))
}

func TestANewFileThatAnotherSeriesAlsoAdds(t *testing.T) {
	w := newWorldWithNewFile(t)
	w.write("patches/v1.32/go.mod", "module podenv.dev/patches/v1.32\n\nrequire k8s.io/kubernetes "+older+"\n")
	w.write("patches/v1.32/0001-a.patch", w.patches()["0001-kubelet-join.patch"])
	w.edit(joins, "return 10", "return 11")
	w.commit("kubelet: eleven")
	w.mustWritePatches()
	if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, joins+" changes for v1.32 too") }) {
		t.Errorf("the notes are %q", w.notes)
	}
	w.mustAssemble()
	w.write("patches/v1.32/new/"+joins, "package kubelet // v1.32\n")
	w.edit(joins, "return 11", "return 12")
	w.commit("kubelet: twelve")
	w.mustWritePatches()
	if !slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, "the own form of v1.32") }) {
		t.Errorf("with an own form of v1.32 the notes are %q", w.notes)
	}
	w.mustAssemble()
	w.write("patches/v1.33/new/"+joins, w.read("patches/new/"+joins))
	w.edit(joins, "return 12", "return 13")
	w.commit("kubelet: thirteen")
	w.mustWritePatches()
	if slices.ContainsFunc(w.notes, func(n string) bool { return strings.Contains(n, "v1.32") }) {
		t.Errorf("with an own form the notes are %q", w.notes)
	}
	w.ok(os.RemoveAll(filepath.Join(w.layout.Root, "patches/v1.33/new")))
	w.mustAssemble()
	w.ok(os.RemoveAll(filepath.Join(w.layout.Root, "patches/v1.32/new")))
	w.edit("pkg/kubelet/kubelet.go", "return Joins() }", "return 10 }")
	w.git("rm", "-q", joins)
	w.commit("kubelet: do not join")
	w.mustWritePatches()
	if w.read("patches/new/"+joins) == "" {
		t.Errorf("v1.32 has lost the file; the notes are %q", w.notes)
	}
}

func TestANewFileEditedHereAloneIsForTheNextAssembly(t *testing.T) {
	w := newWorldWithNewFile(t)
	w.write("patches/new/"+joins, "package kubelet\n\nfunc Joins() int { return 12 }\n")
	if changed := w.mustWritePatches(); len(changed) > 0 {
		t.Errorf("the older tree wrote %v", changed)
	}
	w.mustAssemble()
	if got := w.git("show", "HEAD:"+joins); !strings.Contains(got, "return 12") {
		t.Errorf("the tree has %q", got)
	}
	w.edit(joins, "12", "13")
	w.commit("kubelet: 13")
	w.write("patches/new/"+joins, "package kubelet\n\nfunc Joins() int { return 14 }\n")
	if _, err := w.writePatches(); err == nil || !strings.Contains(err.Error(), "patches/new/"+joins+" was edited both") {
		t.Errorf("edited in both places: %v", err)
	}
}

func TestWhatStaysInThePatch(t *testing.T) {
	w := newWorldWithNewFile(t)
	w.edit("logo.png", "", "\x00\x01")
	w.edit("with space.go", "", "package a\n")
	w.edit("later-deleted.go", "", "package a\n")
	w.ok(os.Symlink("kubelet.go", filepath.Join(w.dir(), "pkg/kubelet/link.go")))
	w.commit("odd files")
	w.git("rm", "-q", "later-deleted.go")
	w.commit("delete one")
	w.mustWritePatches()
	patch := w.patches()["0003-odd-files.patch"]
	for _, path := range []string{"logo.png", "with space.go", "later-deleted.go", "pkg/kubelet/link.go"} {
		if !strings.Contains(patch, "diff --git a/"+path) || w.read("patches/new/"+path) != "" {
			t.Errorf("%s is not in the patch:\n%s", path, patch)
		}
	}
	tree := w.git("rev-parse", "HEAD^{tree}")
	w.mustAssemble()
	w.wantRev("HEAD^{tree}", tree)
}

// licenseHeader is the license header of new Go files in the trees of newWorldWithHeader.
const licenseHeader = "/*\nCopyright 2026 The Authors.\n*/\n\n"

// newWorldWithHeader is newWorldWithNewFile, in which new files have a license header.
func newWorldWithHeader(t testing.TB) *world {
	t.Helper()
	w := newWorldWithNewFile(t)
	w.write("patches/boilerplate.go.txt", strings.TrimSpace(licenseHeader)+"\n")
	w.load()
	w.mustAssemble()
	return w
}

func TestALicenseHeaderStandsOnce(t *testing.T) {
	w := newWorldWithHeader(t)
	tree := w.git("rev-parse", "HEAD^{tree}")
	if got, want := w.git("show", "HEAD:"+joins)+"\n", licenseHeader+w.read("patches/new/"+joins); got != want {
		t.Errorf("the tree has\n%s\nwant\n%s", got, want)
	}
	if got := w.git("show", "HEAD:hack/run.sh"); got != "#!/bin/sh" {
		t.Errorf("the script is %q", got)
	}
	if changed := w.mustWritePatches(); len(changed) > 0 {
		t.Errorf("writing the patches of an assembled tree changed %v", changed)
	}
	w.edit(joins, "return 10", "return 11")
	w.edit("pkg/kubelet/more.go", "", "//go:build linux\n\n"+licenseHeader+"package kubelet\n")
	w.edit("pkg/kubelet/theirs.go", "", "// Copyright 2019 Others.\n\npackage kubelet\n")
	w.commit("kubelet: more")
	edited := w.git("rev-parse", "HEAD^{tree}")
	want := []string{"patches/new/" + joins, "patches/new/pkg/kubelet/more.go", "patches/new/pkg/kubelet/theirs.go", "patches/v1.33/0003-kubelet-more.patch"}
	if diff := cmp.Diff(want, w.mustWritePatches()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		joins:                   "package kubelet\n\n// Joins joins.\nfunc Joins() int { return 11 }\n",
		"pkg/kubelet/more.go":   "//go:build linux\n\npackage kubelet\n",
		"pkg/kubelet/theirs.go": "// Copyright 2019 Others.\n\npackage kubelet\n",
	} {
		if diff := cmp.Diff(want, w.read("patches/new/"+path)); diff != "" {
			t.Errorf("patches/new/%s (-want +got):\n%s", path, diff)
		}
	}
	w.reassemble()
	if got := w.git("rev-parse", "HEAD^{tree}"); got != edited || got == tree {
		t.Errorf("reassembled the tree is %s, was %s", got, edited)
	}
	w.ok(series.CheckNewFiles(w.layout))
}

func TestANewFileWithoutALicenseHeaderStaysInThePatch(t *testing.T) {
	w := newWorldWithHeader(t)
	w.edit("pkg/kubelet/bare.go", "", "package kubelet\n")
	w.edit(joins, licenseHeader, "")
	w.commit("kubelet: bare")
	tree := w.git("rev-parse", "HEAD^{tree}")
	w.mustWritePatches()
	if patch := w.patches()["0003-kubelet-bare.patch"]; !strings.Contains(patch, "b/pkg/kubelet/bare.go") || w.read("patches/new/"+joins) != "" {
		t.Errorf("the patch is\n%s", patch)
	}
	for _, path := range []string{"pkg/kubelet/bare.go", joins} {
		if !slices.Contains(w.notes, path+" stays in its patch, because it has no license header: start it with the text of patches/boilerplate.go.txt") {
			t.Errorf("%s is not in the notes %q", path, w.notes)
		}
	}
	w.mustAssemble()
	w.wantRev("HEAD^{tree}", tree)
}

func TestAnotherLicenseHeaderIsForTheNextAssembly(t *testing.T) {
	w := newWorldWithHeader(t)
	newer := strings.Replace(licenseHeader, "2026", "2027", 1)
	w.write("patches/boilerplate.go.txt", newer)
	w.load()
	if changed := w.mustWritePatches(); len(changed) > 0 {
		t.Errorf("the older tree wrote %v", changed)
	}
	w.mustAssemble()
	if got := w.git("show", "HEAD:"+joins); !strings.HasPrefix(got, newer+"package kubelet") {
		t.Errorf("the tree has %q", got)
	}
	w.edit(joins, "return 10", "return 13")
	w.commit("kubelet: 13")
	w.write("patches/new/"+joins, "package kubelet\n\nfunc Joins() int { return 14 }\n")
	if _, err := w.writePatches(); err == nil || !strings.Contains(err.Error(), "patches/new/"+joins+" was edited both") {
		t.Errorf("edited in both places: %v", err)
	}
	w.write("patches/new/"+joins, "package kubelet\n\n// Joins joins.\nfunc Joins() int { return 13 }\n")
	if changed := w.mustWritePatches(); len(changed) != 0 {
		t.Errorf("equal in both places, the file was written: %v", changed)
	}
}

func TestWrongNamesOfNewFilesSayWhatToDo(t *testing.T) {
	const patch = "patches/v1.33/0001-kubelet-join.patch"
	rename := func(to string) func(*world) {
		return func(w *world) {
			w.write(patch, strings.Replace(w.read(patch), "New-File: "+joins, "New-File: "+to, 1))
		}
	}
	for name, c := range map[string]struct {
		do   func(w *world)
		want string
	}{
		"a file that is not there":    {rename("pkg/none.go"), "neither patches/new nor patches/v1.33/new has"},
		"a file that two patches add": {rename("hack/run.sh"), "both 0001-kubelet-join.patch and 0002-kubelet-test.patch"},
		"a file of the release": {func(w *world) {
			rename("pkg/apis/core/types.go")(w)
			w.write("patches/new/pkg/apis/core/types.go", "package core\n")
		}, "adds the new file pkg/apis/core/types.go, which v1.33.13 has"},
		"an import of ours": {func(w *world) {
			w.write("patches/new/"+joins, "package kubelet\n\nimport _ \"podenv.dev/pkg/kubelet\"\n")
		}, "imports podenv.dev/pkg/kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldWithNewFile(t)
			c.do(w)
			if _, err := w.assemble(Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

func TestCheckNewFilesFindsFilesThatNoPatchAdds(t *testing.T) {
	w := newWorldWithNewFile(t)
	w.write("patches/new/pkg/unused.go", "package a\n")
	w.write("patches/v1.33/new/pkg/unused.go", "package a\n")
	w.write("patches/v1.33/new/"+joins, w.read("patches/new/"+joins))
	err := series.CheckNewFiles(w.layout)
	for _, want := range []string{"adds patches/new/pkg/unused.go", "adds patches/v1.33/new/pkg/unused.go", "is the same as patches/new/" + joins} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error %v", want, err)
		}
	}
}

func TestARebaseCarriesTheNamesOfNewFiles(t *testing.T) {
	w := newRebaseWorld(t, false)
	w.edit(joins, "", "package kubelet\n\nfunc Joins() int { return 10 }\n")
	w.edit("pkg/kubelet/kubelet.go", "return 12 }", "return Joins() }")
	w.commit("kubelet: join")
	w.mustWritePatches()
	w.write("patches/boilerplate.go.txt", licenseHeader)
	w.load()
	older, err := series.Load(w.layout, "v1.32")
	w.ok(err)
	w.older = older
	w.mustAssemble()
	w.write("patches/v1.32/new/"+joins, "package kubelet // v1.32\n")
	common := w.read("patches/new/" + joins)
	w.mustRebase(false)
	if carried := w.carried()["0004-kubelet-join.patch"]; !strings.Contains(carried, "New-File: "+joins+"\n") || strings.Contains(carried, "package kubelet") {
		t.Errorf("the carried patch is\n%s", carried)
	}
	if w.read("patches/new/"+joins) != common || w.read("patches/v1.32/new/"+joins) != "package kubelet // v1.32\n" {
		t.Error("a form of the new file has changed")
	}
	// A change of the common form is no reason to carry the patch again.
	w.write("patches/new/"+joins, common+"// more\n")
	w.mustAssemble()
	if how, changed := w.mustRebase(false); len(how)+len(changed) > 0 {
		t.Errorf("rebasing again did %v and wrote %v", how, changed)
	}
}
