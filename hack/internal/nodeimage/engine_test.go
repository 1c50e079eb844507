package nodeimage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/testutil"
)

// docker is a fake that has the images that it was given by load.
const docker = `case "$1 ${2:-}" in
"load "*) cat >"$FAKE/loaded.tar" ;;
"image inspect") [ -e "$FAKE/loaded.tar" ] || exit 1 ;;
esac`

func TestBaseIsLoadedOnce(t *testing.T) {
	l := fakeRepository(t)
	dir, calls := fakeCommands(t, map[string]string{
		"docker": docker, "go": goBuilds(t),
		"apt-get":    `echo "http://mirror.example/debian/ bookworm main"`,
		"apt-config": "true",
		"mmdebstrap": `for arg; do case $arg in */rootfs.tar) cp "$FAKE/rootfs.tar" "$arg" ;; esac; done`,
		"dpkg-query": `case "$*" in *--admindir=*) cat ` + filepath.Join(l.Root, packagesLock) + ` ;; *) echo mmdebstrap installed ;; esac`,
	})
	testutil.WriteFile(t, filepath.Join(dir, "rootfs.tar"), string(rootfsTar(t, smallRoot, image.Epoch)))
	var refs []string
	for range 2 {
		ref, err := Base(t.Context(), l, &engine.Engine{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
		// What has not changed is not read again.
		tars, err := filepath.Glob(filepath.Join(l.Cache("rootfs"), "*.tar"))
		if err != nil || len(tars) != 1 {
			t.Fatal(tars, err)
		}
		testutil.WriteFile(t, tars[0], "not a tar")
	}
	if refs[0] != refs[1] {
		t.Errorf("the same base image is called %v", refs)
	}
	loads := slices.DeleteFunc(calls(), func(c string) bool { return c != "docker load" })
	if len(loads) != 1 {
		t.Errorf("the base image was loaded %d times: %v", len(loads), calls())
	}
	tags, err := image.Tags(filepath.Join(dir, "loaded.tar"))
	if err != nil || !slices.Equal(tags, refs[:1]) {
		t.Errorf("what was loaded is called %v, want %s (%v)", tags, refs[0], err)
	}
	files, img := imagetest.Archive(t, filepath.Join(dir, "loaded.tar"))
	if files["usr/sbin/init"].Linkname == "" {
		t.Error("what was loaded has no /usr/sbin/init")
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(nodeConfig, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestAssembleLeavesNoContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		fails   string
		wantErr string
	}{
		"when all goes well":             {"none", ""},
		"when the container won't start": {"run", "docker run"},
		"when files cannot be copied":    {"cp", "docker cp"},
		"when containerd won't start":    {"exec", "starting containerd"},
		"when it cannot be saved":        {"commit", "docker commit"},
	} {
		t.Run(name, func(t *testing.T) {
			_, calls := fakeCommands(t, map[string]string{"docker": `if [ "$1" = ` + tc.fails + ` ]; then exit 1; fi
case "$1" in cp | exec) cat >/dev/null ;; esac`})
			err := assemble(t.Context(), &engine.Engine{}, "podenv/node-base:b", "podenv/node:v1-h", "v1", []image.File{{Path: "/kind/version", Data: []byte("v1")}}, nil, nil)
			testutil.CheckError(t, err, tc.wantErr)
			all := calls()
			if last := all[len(all)-1]; last != "docker rm --force --volumes podenv-node-image-v1-h" {
				t.Errorf("the last command is %q, want the container removed", last)
			}
		})
	}
}

func TestAssembleRemovesItsContainerAfterCtrlC(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir, calls := fakeCommands(t, map[string]string{"docker": `if [ "$1" = run ]; then touch "$FAKE/runs"; exec sleep 60; fi`})
	done := make(chan error, 1)
	go func() {
		done <- assemble(ctx, &engine.Engine{}, "podenv/node-base:b", "podenv/node:v1-h", "v1", nil, nil, nil)
	}()
	err := poll.Until(t.Context(), time.Minute, func(context.Context) error {
		_, err := os.Stat(filepath.Join(dir, "runs"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		testutil.CheckError(t, err, "signal: terminated")
	}
	all := calls()
	if last := all[len(all)-1]; last != "docker rm --force --volumes podenv-node-image-v1-h" {
		t.Errorf("the last command is %q, want the container removed", last)
	}
}

func TestPruneKeepsTheNewest(t *testing.T) {
	_, calls := fakeCommands(t, map[string]string{"docker": `if [ "$2" = ls ]; then for n in 5 4 3 2 1; do echo podenv/node:v1-$n; done; fi`})
	prune(t.Context(), &engine.Engine{}, "v1")
	got := slices.DeleteFunc(calls(), func(c string) bool { return !strings.HasPrefix(c, "docker image rm") })
	if want := []string{"docker image rm podenv/node:v1-2", "docker image rm podenv/node:v1-1"}; !slices.Equal(got, want) {
		t.Errorf("removed %v, want %v", got, want)
	}
}
