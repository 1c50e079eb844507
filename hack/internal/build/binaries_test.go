package build

import (
	"context"
	"debug/buildinfo"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/source"
)

func editWord(dir, pkg, word string) error {
	return os.WriteFile(filepath.Join(dir, "pkg", pkg, pkg+".go"),
		[]byte("package "+pkg+"\n\nconst Word = \""+word+"\"\n"), 0o644)
}

func TestBinariesAreStampedWithReleaseAndNumberOfPatches(t *testing.T) {
	l, tree := newTree(t,
		func(dir string) { editWord(dir, "word", "one") },
		func(dir string) { editWord(dir, "word", "two") })
	for _, tc := range []struct {
		name  string
		stock bool
		want  string
	}{
		{"patched", false, "v1.33.13+podenv.2 1 33 dirty 2026-01-02T03:04:05Z 40\n"},
		{"stock", true, "v1.33.13 1 33 clean 2026-01-02T03:04:05Z 40\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := Binaries(t.Context(), l, &source.Tree{Dir: tree.Dir, Series: tree.Series, Stock: tc.stock}, runtime.GOARCH, Components, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(r.Binaries)); !slices.Equal(got, slices.Sorted(slices.Values(Components))) {
				t.Errorf("built %v, want all of %v", got, Components)
			}
			for c, file := range r.Binaries {
				if !strings.HasPrefix(outputOf(t, file), tc.want) {
					t.Errorf("%s says %q, want %q", c, outputOf(t, file), tc.want)
				}
			}
			if want, _, _ := strings.Cut(tc.want, " "); r.Version != want {
				t.Errorf("Version = %s, want %s", r.Version, want)
			}
		})
	}
}

// edit edits a file of the tree that is not an input of any component.
func edit(t *testing.T, tree *source.Tree) {
	t.Helper()
	write(t, filepath.Join(tree.Dir, "README.md"), "hello")
}

func TestTheVersionSaysThatTheTreeWasEdited(t *testing.T) {
	l, tree := newTree(t, func(dir string) { editWord(dir, "word", "one") })
	for _, tc := range []struct {
		name   string
		change func()
		stock  bool
		want   string
	}{
		{"a tree without edits", func() {}, false, "v1.33.13+podenv.1 1 33 dirty"},
		{"an edit", func() { edit(t, tree) }, false, "v1.33.13+podenv.1.dirty 1 33 dirty"},
		{"an edit that is committed", func() { commit(t, tree.Dir, "edit") }, false, "v1.33.13+podenv.1.dirty 1 33 dirty"},
		{"an edit of a stock release", func() {}, true, "v1.33.13+dirty 1 33 dirty"},
		{"an edit that is taken back", func() { gitIn(t, tree.Dir, "reset", "--quiet", "--hard", "HEAD~1") }, false, "v1.33.13+podenv.1 1 33 dirty"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.change()
			r, err := Binaries(t.Context(), l, &source.Tree{Dir: tree.Dir, Series: tree.Series, Stock: tc.stock}, runtime.GOARCH, []string{"kubelet"}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := outputOf(t, r.Binaries["kubelet"]); !strings.HasPrefix(got, tc.want+" ") || !strings.HasPrefix(tc.want, r.Version+" ") {
				t.Errorf("Version = %s, the kubelet says %q, want %q", r.Version, got, tc.want)
			}
		})
	}
}

func TestBinariesAreBuiltAgainOnlyIfSomethingChanged(t *testing.T) {
	l, tree := newTree(t)
	count := countBuilds(t)
	build := func(components ...string) *Result {
		t.Helper()
		if len(components) == 0 {
			components = Components
		}
		r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, components, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := build()
	bin := func(c string) string { return first.Binaries[c] }

	for _, tc := range []struct {
		name    string
		change  func() error
		build   []string
		builds  int
		kubelet string // what the kubelet then says
	}{
		{name: "nothing changed", builds: 0, kubelet: "node"},
		{
			name:   "an uncommitted edit",
			change: func() error { return editWord(tree.Dir, "node", "edited") },
			build:  []string{"kubelet"}, builds: 1, kubelet: "edited",
		},
		{name: "the same edit again", build: []string{"kubelet"}, builds: 0, kubelet: "edited"},
		{name: "the other components after that edit", builds: 1, kubelet: "edited"},
		{
			name:   "the edit is committed",
			change: func() error { commit(t, tree.Dir, "edit"); return nil },
			builds: 0, kubelet: "edited",
		},
		{
			name: "a new file, not added to git",
			change: func() error {
				write(t, filepath.Join(tree.Dir, "pkg/node/init.go"), "package node\n\nfunc init() { println(\"hello\") }\n")
				return nil
			},
			builds: 1, kubelet: "hello",
		},
		{
			name:   "the new file is removed",
			change: func() error { return os.Remove(filepath.Join(tree.Dir, "pkg/node/init.go")) },
			builds: 1, kubelet: "edited",
		},
		{
			name:   "a binary was deleted",
			change: func() error { return os.Remove(bin("kubelet")) },
			builds: 1, kubelet: "edited",
		},
		{
			name:   "a binary was cut short",
			change: func() error { return os.WriteFile(bin("kubelet"), []byte("#!/bin/false\n"), 0o755) },
			builds: 1, kubelet: "edited",
		},
		{
			name:   "the manifest is half-written",
			change: func() error { return os.WriteFile(manifestPath(first.Dir), []byte(`{"binaries":{"kube`), 0o644) },
			builds: 1, kubelet: "edited",
		},
		{
			name: "a build was interrupted",
			change: func() error {
				write(t, filepath.Join(first.Dir, "work", "tmp", "go-build1", "b001", "exe", "a.out"), "half")
				return editWord(tree.Dir, "node", "later")
			},
			builds: 1, kubelet: "later",
		},
		{
			name:   "one more patch changes the stamp",
			change: func() error { write(t, filepath.Join(tree.Series.Dir, "0001-x.patch"), "Subject: x\n"); return nil },
			builds: 1, kubelet: "v1.33.13+podenv.1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.change != nil {
				if err := tc.change(); err != nil {
					t.Fatal(err)
				}
			}
			before := count()
			build(tc.build...)
			if got := count() - before; got != tc.builds {
				t.Errorf("go build ran %d times, want %d", got, tc.builds)
			}
			if got := outputOf(t, bin("kubelet")); !strings.Contains(got, tc.kubelet) {
				t.Errorf("the kubelet says %q, want %q in it", got, tc.kubelet)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(first.Dir, "work", "tmp")); !os.IsNotExist(err) {
		t.Errorf("the Go tool's folder is left: %v", err)
	}
}

func TestBinariesOfOneComponentLeavesTheOthersAlone(t *testing.T) {
	l, tree := newTree(t)
	all, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(all.Binaries["kube-proxy"])
	if err != nil {
		t.Fatal(err)
	}
	if err := editWord(tree.Dir, "word", "edited"); err != nil {
		t.Fatal(err)
	}
	one, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubectl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Binaries) != 1 || !strings.Contains(outputOf(t, one.Binaries["kubectl"]), "edited") {
		t.Errorf("Binaries = %v, kubectl says %q", one.Binaries, outputOf(t, one.Binaries["kubectl"]))
	}
	after, err := os.Stat(all.Binaries["kube-proxy"])
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) {
		t.Error("kube-proxy was replaced although only kubectl was asked for")
	}
}

func TestFailedBuildKeepsOtherBinaries(t *testing.T) {
	l, tree := newTree(t)
	edit(t, tree) // the first edit changes the stamp
	all, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil)
	if err != nil {
		t.Fatal(err)
	}
	linked := func(c string) os.FileInfo {
		t.Helper()
		info, err := os.Stat(all.Binaries[c])
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := linked("kube-proxy")
	write(t, filepath.Join(tree.Dir, "pkg/node/node.go"), "package node\n\nconst Word = wrong\n")
	if _, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil); err == nil {
		t.Fatal("it compiled")
	}
	if err := editWord(tree.Dir, "node", "fixed"); err != nil {
		t.Fatal(err)
	}
	if _, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil); err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, linked("kube-proxy")) {
		t.Error("kube-proxy was linked again although nothing of it had changed")
	}
}

func TestBinariesRefusesATreeWithoutARepository(t *testing.T) {
	l, tree := newTree(t)

	if err := os.RemoveAll(filepath.Join(tree.Dir, ".git")); err != nil {
		t.Fatal(err)
	}
	// The tree is inside another repository: that of the checkout.
	gitIn(t, l.Root, "init", "--quiet")
	commit(t, l.Root, "podenv")
	if _, err := Binaries(t.Context(), l, tree, runtime.GOARCH, Components, nil); err == nil || !strings.Contains(err.Error(), "run `podenv tree") {
		t.Errorf("a tree without a repository: %v", err)
	}
}

func TestInterruptedBuildGoesOn(t *testing.T) {
	l, tree := newTree(t)
	path, started := os.Getenv("PATH"), filepath.Join(t.TempDir(), "started")
	fakeGo(t, "if [ \"$1\" = build ]; then mkdir \"$GOTMPDIR/go-build1\"; : >"+started+"; exec sleep 100; fi")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := Binaries(ctx, l, tree, runtime.GOARCH, Components, nil)
		ended <- err
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("go build has not been started in 20 seconds")
		}
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the interrupted build ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the build went on for 20 seconds after the interrupt")
	}
	if _, err := os.Stat(filepath.Join(l.Build("v1.33"), "work", "tmp")); !os.IsNotExist(err) {
		t.Errorf("the Go tool's folder is left: %v", err)
	}

	t.Setenv("PATH", path)
	r, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubelet"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := outputOf(t, r.Binaries["kubelet"]); !strings.Contains(got, "node") {
		t.Errorf("the kubelet says %q", got)
	}
}

func TestTwoBuildsAtOnceDoTheWorkOnce(t *testing.T) {
	l, tree := newTree(t)
	count := countBuilds(t)
	var both errgroup.Group
	for range 2 {
		both.Go(func() error {
			_, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubectl"}, nil)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	if count() != 1 {
		t.Errorf("go build ran %d times, want once", count())
	}
}

func TestTreeContentLeavesNoTrace(t *testing.T) {
	_, tree := newTree(t)
	if err := editWord(tree.Dir, "word", "edited"); err != nil {
		t.Fatal(err)
	}
	snapshot := func() string {
		return read(t, filepath.Join(tree.Dir, ".git", "index")) + gitIn(t, tree.Dir, "count-objects", "--verbose")
	}
	before, scratch := snapshot(), t.TempDir()
	edited, err := TreeContent(t.Context(), tree.Dir, scratch)
	if err != nil {
		t.Fatal(err)
	}
	if snapshot() != before {
		t.Error("the tree's repository has changed")
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch has %v, %v", left, err)
	}
	commit(t, tree.Dir, "edit")
	committed, err := TreeContent(t.Context(), tree.Dir, scratch)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(gitIn(t, tree.Dir, "rev-parse", "HEAD^{tree}")); edited != want || committed != want {
		t.Errorf("edited %s, committed %s; want git's own %s for both", edited, committed, want)
	}
}

func TestBinariesForAnotherArchitectureLeaveThoseOfThisMachineAlone(t *testing.T) {
	l, tree := newTree(t)
	foreign := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	host, err := Binaries(t.Context(), l, tree, runtime.GOARCH, []string{"kubectl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Binaries(t.Context(), l, tree, foreign, []string{"kubectl"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for arch, bin := range map[string]string{runtime.GOARCH: host.Binaries["kubectl"], foreign: r.Binaries["kubectl"]} {
		info, err := buildinfo.ReadFile(bin)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(info.Settings, debug.BuildSetting{Key: "GOARCH", Value: arch}) {
			t.Errorf("%s is not of %s: %v", bin, arch, info.Settings)
		}
	}
	builds := countBuilds(t)
	if _, err := Binaries(t.Context(), l, tree, foreign, []string{"kubectl"}, nil); err != nil || builds() > 0 {
		t.Errorf("an unchanged tree was built again: %v", err)
	}
}
