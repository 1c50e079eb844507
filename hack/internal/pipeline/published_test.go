package pipeline

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/testutil"
)

// newRepository is a repository with one commit and what provenance reads.
func newRepository(t *testing.T) (*Pipeline, func(args ...string) string) {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = l.Root
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	lock := "hack/internal/debian/packages-amd64.lock"
	pinned, err := os.ReadFile(filepath.Join(layout.MustFind().Root, lock))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		".gitignore": "/_output/\n/trees/\n", "go.sum": "", "patches/v1.33/go.sum": "sums", "patches/v1.33/0001-x.patch": "From: a\n", lock: string(pinned),
		"trees/v1.33/x": "a tree", "_output/x": "made",
	} {
		testutil.WriteFile(t, filepath.Join(l.Root, name), text)
	}
	git("init", "--quiet")
	git("add", "--all")
	git("commit", "--quiet", "-m", "one")
	return &Pipeline{Layout: l, Series: series.Series{Name: "v1.33", Release: "v1.33.13", Dir: l.Patches("v1.33")}}, git
}

func TestARebuildNeedsTheSameInputs(t *testing.T) {
	p, git := newRepository(t)
	built, err := p.Provenance(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commit := git("rev-parse", "HEAD")
	if built.Commit != commit || built.Version != "v1.33.13+podenv.1" || built.Dependencies[0].Digest["gitCommit"] != commit {
		t.Errorf("provenance = %+v", built)
	}
	for _, d := range built.Dependencies[1:] { // a package URL has no bare plus sign
		if !strings.HasPrefix(d.URI, "pkg:") || strings.ContainsAny(d.URI, "=+") {
			t.Errorf("dependency %s", d.URI)
		}
	}
	testutil.CheckError(t, p.SameInputs(t.Context(), built), "")
	older := built
	older.Go = "go1.0"
	testutil.CheckError(t, p.SameInputs(t.Context(), older), "it was built with go1.0, this podenv with go1")
	testutil.CheckError(t, p.SameInputs(t.Context(), attest.Provenance{Go: built.Go}), "nobody can build it again")
	wrong := built
	wrong.Version = "v1.33.14+podenv.1"
	testutil.CheckError(t, p.SameInputs(t.Context(), wrong), "its statement is wrong: it names v1.33.14+podenv.1, and that commit builds v1.33.13+podenv.1")
	testutil.WriteFile(t, filepath.Join(p.Layout.Root, "edit"), "")
	testutil.CheckError(t, p.SameInputs(t.Context(), built), "this repository is at no commit, with changes")
	git("add", "--all")
	git("commit", "--quiet", "-m", "two")
	testutil.CheckError(t, p.SameInputs(t.Context(), built), "run `git checkout "+commit+"` first")
}

// A rebuild on a machine of another architecture has nothing to compare with.
func TestTheNodeImageIsForThisMachineAlone(t *testing.T) {
	for _, names := range [][]string{{"node"}, {"pause", "node"}} {
		_, err := new(Pipeline).Published(t.Context(), []string{"linux/riscv64"}, names)
		testutil.CheckError(t, err, "for linux/"+runtime.GOARCH+" alone: run this on a machine of linux/riscv64")
	}
}

// Series that ask for the same pause have it under one tag in a registry, which does not move.
func TestSeveralSeriesPublishTheSamePause(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "pause.tar")
	spec := image.Spec{Name: "registry.k8s.io/pause:3.10.1", Files: []image.File{{Path: "/pause", Mode: 0o755, Data: []byte("pause")}}}
	if err := spec.Write(archive); err != nil {
		t.Fatal(err)
	}
	digests := map[string]bool{}
	for _, s := range []series.Series{{Name: "v1.34", Release: "v1.34.10"}, {Name: "v1.35", Release: "v1.35.8"}} {
		p, images := &Pipeline{Layout: layout.Layout{Root: t.TempDir()}, Series: s}, map[string]publish.Image{}
		parts := nodeimage.Parts{Support: []string{archive}, Build: &build.Result{}}
		if err := p.store(t.Context(), images, "linux/amd64", []string{"pause"}, parts, nil); err != nil {
			t.Fatal(err)
		}
		rows, err := publish.Registry{Path: "registry.example.com/kubernetes", DryRun: true}.Push(t.Context(), []publish.Image{images["pause"]}, nil)
		if err != nil || rows[0].Reference != "registry.example.com/kubernetes/pause:3.10.1" {
			t.Fatal(rows, err)
		}
		digests[rows[0].Digest] = true
	}
	if len(digests) != 1 {
		t.Errorf("they publish %v", digests)
	}
}

func TestElsewhereHasTheRepositoryAndNothingThatWasMade(t *testing.T) {
	p, _ := newRepository(t)
	testutil.WriteFile(t, filepath.Join(p.Layout.Root, "edit"), "not committed")
	dir, err := elsewhere(t.Context(), p.Layout)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"patches/v1.33/go.sum": true, "edit": true, "trees": false, "_output": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("the copy has %s: %v, want %v", name, err == nil, want)
		}
	}
	if err := os.Remove(filepath.Join(p.Layout.Root, "go.sum")); err != nil {
		t.Fatal(err)
	}
	if _, err := elsewhere(t.Context(), p.Layout); err == nil {
		t.Error("a file is missing, and the copy is whole")
	}
	if left, err := filepath.Glob(filepath.Join(p.Layout.Output(), "verify", "*")); err != nil || len(left) != 1 {
		t.Errorf("left %q, %v", left, err)
	}
}
