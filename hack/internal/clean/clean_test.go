package clean

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// repository has the series v1.33 and nothing else.
func repository(t *testing.T) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	testutil.WriteFile(t, filepath.Join(l.Patches("v1.33"), "go.mod"), "module podenv.dev/patches/v1.33\n\nrequire k8s.io/kubernetes v1.33.13\n")
	return l
}

// list returns the items by name, which is relative to the repository for a path.
func list(t *testing.T, l layout.Layout, e *engine.Engine) map[string]Item {
	t.Helper()
	items, err := List(t.Context(), l, e, 0)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Item{}
	for _, i := range items {
		byName[strings.TrimPrefix(i.Name, l.Root+"/")] = i
	}
	return byName
}

func (i Item) want(t *testing.T, action, why string) {
	t.Helper()
	if i.Action != action || !strings.Contains(i.Why, why) {
		t.Errorf("%s %s: %s, %q; want %s, %q", i.Kind, i.Name, i.Action, i.Why, action, why)
	}
}

func TestBuildsGoWithTheirSeries(t *testing.T) {
	l := repository(t)
	for _, name := range []string{"v1.33", "v1.33-stock", "v1.20", "v1.20-stock"} {
		testutil.WriteFile(t, filepath.Join(l.Build(name), "bin", "kubelet"), strings.Repeat("x", 5000))
	}
	items := list(t, l, nil)
	items["_output/build/v1.33"].want(t, Keep, "of series v1.33")
	items["_output/build/v1.33-stock"].want(t, Keep, "of series v1.33")
	items["_output/build/v1.20"].want(t, Remove, "no series v1.20")
	items["_output/build/v1.20-stock"].want(t, Remove, "no series v1.20")
	if size := items["_output/build/v1.20"].Bytes; size < 5000 || size > 64<<10 {
		t.Errorf("a build of 5000 bytes takes %d", size)
	}
	if err := Run(t.Context(), []Item{items["_output/build/v1.33"], items["_output/build/v1.20"]}); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(filepath.Dir(l.Build("x")))
	if len(left) != 3 || left[0].Name() != "v1.20-stock" {
		t.Errorf("left are %v, want all but v1.20", left)
	}
}

func TestTreesWithEditsStay(t *testing.T) {
	l := repository(t)
	// One that podenv did not make may be all that somebody has.
	testutil.WriteFile(t, filepath.Join(l.Tree("v1.19"), "main.go"), "package main")
	if err := os.MkdirAll(l.Tree("v1.20"), 0o755); err != nil {
		t.Fatal(err)
	}
	items := list(t, l, nil)
	items["trees/v1.19"].want(t, Keep, "is not a tree that podenv made")
	items["trees/v1.20"].want(t, Remove, "no series v1.20")
}

func TestCachedFilesGoWhenNothingReadsThem(t *testing.T) {
	l := repository(t)
	day := func(days int) time.Time { return time.Now().AddDate(0, 0, -days) }
	for name, at := range map[string]struct{ read, written time.Time }{
		"rootfs/read.tar":        {day(1), day(30)},
		"rootfs/written.tar":     {day(30), day(1)},
		"rootfs/old.tar":         {day(30), day(30)},
		"source/old.git/HEAD":    {day(30), day(30)},
		"source/used.git/HEAD":   {day(30), day(30)},
		"source/used.git/pack":   {day(2), day(30)},
		"source/v1.33.lock":      {day(30), day(30)},
		"../conformance/v1.33/a": {day(30), day(30)},
		"../gates/v1.33/A/a":     {day(30), day(30)},
		"../gates/v1.34/A/a":     {day(1), day(30)},
		"../proof/TestA1/a":      {day(30), day(30)},
		"rootfs/lock":            {day(30), day(30)},
	} {
		file := filepath.Join(l.Output(), "cache", name)
		testutil.WriteFile(t, file, "x")
		if err := os.Chtimes(file, at.read, at.written); err != nil {
			t.Fatal(err)
		}
	}
	testutil.WriteFile(t, filepath.Join(l.Rebase("v1.34"), "edit"), "x")
	if err := os.Chtimes(filepath.Join(l.Rebase("v1.34"), "edit"), day(30), day(30)); err != nil {
		t.Fatal(err)
	}
	items, err := List(t.Context(), l, nil, 7*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	for name, stays := range map[string]bool{
		"cache/rootfs/read.tar": true, "cache/rootfs/written.tar": true, "cache/rootfs/old.tar": false,
		"conformance/v1.33": false, "gates/v1.33": false, "gates/v1.34/A/a": true, "proof/TestA1": false,
		"cache/source/old.git": false, "cache/source/used.git/HEAD": true,
		"cache/source/v1.33.lock": true, "cache/rootfs/lock": true, "../trees/rebase/v1.34/edit": true,
	} {
		if _, err := os.Stat(filepath.Join(l.Output(), name)); (err == nil) != stays {
			t.Errorf("%s: %v, want that it stays: %t", name, err, stays)
		}
	}
}

// docker has node images of two series, with and without a newer one, a container, and
// two base images.
const docker = `#!/bin/sh
echo "$*" >>"$CALLS"
case "$*" in
"image ls --quiet --no-trunc podenv/node") printf 'sha256:1\nsha256:2\nsha256:3\nsha256:4\nsha256:5\nsha256:5\n' ;;
"image ls --quiet --no-trunc podenv/node-base") printf 'sha256:a\nsha256:b\n' ;;
"image inspect sha256:1 sha256:2 sha256:3 sha256:4 sha256:5") cat <<'EOF'
[{"Id":"sha256:1","RepoTags":["podenv/node:old"],"Created":"2026-11-01T00:00:00Z","Size":900,"Config":{"Labels":{"dev.podenv.kubernetes-version":"v1.33.13+podenv.23"}},"RootFS":{"Layers":["b","1"]}},
 {"Id":"sha256:2","RepoTags":["podenv/node:new"],"Created":"2026-11-02T00:00:00Z","Size":900,"Config":{"Labels":{"dev.podenv.kubernetes-version":"v1.33.13+podenv.24"}},"RootFS":{"Layers":["a","2"]}},
 {"Id":"sha256:3","RepoTags":["podenv/node:stock"],"Created":"2026-11-01T00:00:00Z","Size":900,"Config":{"Labels":{"dev.podenv.kubernetes-version":"v1.33.13"}},"RootFS":{"Layers":["a","3"]}},
 {"Id":"sha256:4","RepoTags":["podenv/node:gone"],"Created":"2026-11-03T00:00:00Z","Size":900,"Config":{"Labels":{"dev.podenv.kubernetes-version":"v1.33.12+podenv.24"}},"RootFS":{"Layers":["b","4"]}},
 {"Id":"sha256:5","RepoTags":["podenv/node:runs"],"Created":"2026-10-01T00:00:00Z","Size":900,"Config":{"Labels":{"dev.podenv.kubernetes-version":"v1.20.0"}},"RootFS":{"Layers":["a","5"]}}]
EOF
;;
"image inspect sha256:a sha256:b") echo '[{"Id":"sha256:a","RepoTags":["podenv/node-base:a"],"Size":200,"RootFS":{"Layers":["a"]}},{"Id":"sha256:b","RepoTags":["podenv/node-base:b"],"Size":200,"RootFS":{"Layers":["b"]}}]' ;;
"ps --all --quiet") echo c1 ;;
"container inspect --format {{.Image}} {{.Name}} c1") echo 'sha256:5 /podenv-worker' ;;
"image rm podenv/node:old" | "image rm podenv/node-base:b") ;;
"image rm podenv/node:gone") echo 'image is being used' >&2; exit 1 ;;
*) echo "unexpected: $*" >&2; exit 2 ;;
esac
`

func TestImages(t *testing.T) {
	l, bin := repository(t), t.TempDir()
	testutil.WriteFile(t, filepath.Join(bin, "docker"), docker)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("CALLS", filepath.Join(bin, "calls"))
	items := list(t, l, &engine.Engine{})
	items["podenv/node:new"].want(t, Keep, "newest of series v1.33")
	items["podenv/node:old"].want(t, Remove, "newer one than v1.33.13+podenv.23")
	items["podenv/node:stock"].want(t, Keep, "newest of series v1.33 without patches")
	items["podenv/node:gone"].want(t, Remove, "no series is based on Kubernetes v1.33.12+podenv.24")
	items["podenv/node:runs"].want(t, Keep, "container podenv-worker")
	items["podenv/node-base:a"].want(t, Keep, "built on it")
	items["podenv/node-base:b"].want(t, Remove, "no node image that stays")

	all := []Item{items["podenv/node:new"], items["podenv/node:old"], items["podenv/node:gone"], items["podenv/node-base:b"]}
	if err := Run(t.Context(), all); err == nil || !strings.Contains(err.Error(), "removing image podenv/node:gone") {
		t.Errorf("error %v, want that of the image in use", err)
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(calls), "image rm podenv/node:old\nimage rm podenv/node:gone\nimage rm podenv/node-base:b\n") {
		t.Errorf("commands were %s", calls)
	}
}

func TestRunStopsAtCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	removed := 0
	item := Item{Action: Remove, remove: func(context.Context) error { removed++; cancel(); return nil }}
	if err := Run(ctx, []Item{item, item}); !errors.Is(err, context.Canceled) || removed != 1 {
		t.Errorf("%d removed, error %v; want 1 and %v", removed, err, context.Canceled)
	}
}
