package testimages

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/test/images"
)

// packaged is a fake of Debian's busybox-static. Its busybox is a shell script with a table of
// applets.
var packaged = []image.File{
	{Path: "/usr/bin/busybox", Mode: 0o755, Data: []byte("#!/bin/sh\nprintf 'cat\\nsh\\n'; exit\n\x00[\x00[[\x00busybox\x00cat\x00sh\x00\x00")},
	{Path: "/usr/share/doc/busybox-static/copyright", Mode: 0o644, Data: []byte("terms")},
}

// newRepository returns a repository with an envdump.
func newRepository(t *testing.T) layout.Layout {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	write(t, filepath.Join(l.Root, "go.mod"), "module podenv.dev\n\ngo 1.24.0\n", 0o644)
	write(t, filepath.Join(l.Root, "test/images/envdump/main.go"), "package main\n\nfunc main() { println(1) }\n", 0o644)
	return l
}

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestBuildPacksEveryImage(t *testing.T) {
	l := newRepository(t)
	tars, err := pack(t.Context(), l, packaged, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		ref   string
		user  string
		files []string
	}{
		{images.Busybox, "", []string{"bin/busybox", "bin/sh", "bin/cat", "bin/printenv", "usr/bin/env", "tmp/", "root/", "etc/passwd", "usr/share/doc/busybox-static/copyright"}},
		{images.Envdump, "", []string{"envdump"}},
		{images.EnvdumpNonroot, "65532", []string{"envdump"}},
		{images.EnvdumpGroup, "1000:2000", []string{"envdump"}},
		{images.EnvdumpNamed, "nobody", []string{"envdump", "etc/passwd"}},
	} {
		if tags, err := image.Tags(tars[i]); err != nil || !slices.Equal(tags, []string{want.ref}) {
			t.Errorf("%s has the names %v (%v), want %s", tars[i], tags, err, want.ref)
		}
		files, img := imagetest.Archive(t, tars[i])
		for _, name := range want.files {
			if _, ok := files[name]; !ok {
				t.Errorf("%s lacks %s: %v", want.ref, name, slices.Sorted(maps.Keys(files)))
			}
		}
		if want.ref == images.Envdump && len(files) != 1 {
			t.Errorf("%s has more than its program: %v", want.ref, slices.Sorted(maps.Keys(files)))
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != want.user {
			t.Errorf("%s is run by user %q, want %q", want.ref, config.Config.User, want.user)
		}
	}
}

// Another goroutine's fork has this process's open files until it executes its program. A
// file that is open for writing cannot be executed then ("text file busy").
func TestBusyboxBesideForks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var forks sync.WaitGroup
	for range 8 {
		forks.Go(func() {
			for ctx.Err() == nil {
				exec.Command("true").Run() //nolint:errcheck // only the fork counts
			}
		})
	}
	defer forks.Wait()
	defer cancel()
	for range 100 {
		if _, err := busybox(packaged); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAppletsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		program string
		want    []string
	}{
		"a table":              {"ELF\x00[\x00[[\x00cat\x00sh\x00\x00/etc/passwd\x00", []string{"[", "[[", "cat", "sh"}},
		"no table":             {"ELF\x00cat\x00sh\x00\x00", nil},
		"a table without end":  {"ELF\x00[\x00[[\x00cat\x00sh", nil},
		"a table without a sh": {"ELF\x00[\x00[[\x00cat\x00\x00", nil},
	} {
		t.Run(name, func(t *testing.T) {
			applets, err := appletsOf([]byte(tc.program))
			if !slices.Equal(applets, tc.want) || (err == nil) != (tc.want != nil) {
				t.Errorf("got %q, error %v; want %q", applets, err, tc.want)
			}
		})
	}
}

func TestAppletsOfAreThoseThatDebiansBusyboxLists(t *testing.T) {
	archives, _ := filepath.Glob(filepath.Join(layout.MustFind().Cache("testimages"), "busybox-*.tar")) // the pattern is valid
	if len(archives) == 0 {
		t.Skip("no image of busybox in _output/cache: `podenv up` packs it")
	}
	files, _ := imagetest.Archive(t, archives[0])
	program := files["bin/busybox"].Data
	file := filepath.Join(t.TempDir(), "busybox")
	write(t, file, string(program), 0o755)
	out, err := exec.Command(file, "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	applets, err := appletsOf(program)
	if want := strings.Fields(string(out)); err != nil || !slices.Equal(applets, want) {
		t.Errorf("got %q, error %v; want %q", applets, err, want)
	}
}

func TestBuildPacksAgainOnlyWhatChanged(t *testing.T) {
	l := newRepository(t)
	first, err := pack(t.Context(), l, packaged, nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := pack(t.Context(), l, packaged, nil)
	if err != nil || !slices.Equal(first, second) {
		t.Fatalf("nothing changed: %v, %v; want %v", second, err, first)
	}
	write(t, filepath.Join(l.Root, "test/images/envdump/main.go"), "package main\n\nfunc main() { println(2) }\n", 0o644)
	third, err := pack(t.Context(), l, packaged, nil)
	if err != nil || third[0] != first[0] || third[1] == first[1] {
		t.Fatalf("envdump changed: %v, %v; before %v", third, err, first)
	}
	slices.Sort(third)
	if kept, _ := filepath.Glob(filepath.Join(l.Cache("testimages"), "*.tar")); !slices.Equal(kept, third) {
		t.Errorf("the cache has %v, want those in use: %v", kept, third)
	}
}

func TestBuildIsTheSameInTwoRepositories(t *testing.T) {
	var contents [2][]string
	for i := range contents {
		tars, err := pack(t.Context(), newRepository(t), packaged, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tar := range tars {
			data, err := os.ReadFile(tar)
			if err != nil {
				t.Fatal(err)
			}
			contents[i] = append(contents[i], filepath.Base(tar), string(data))
		}
	}
	if !slices.Equal(contents[0], contents[1]) {
		t.Error("two repositories with the same files make different images")
	}
}

func TestBuildSaysWhatFailed(t *testing.T) {
	l := newRepository(t)
	write(t, filepath.Join(l.Root, "test/images/envdump/main.go"), "package main\n\nfunc main() { wrong }\n", 0o644)
	_, err := pack(t.Context(), l, packaged, nil)
	if err == nil || !strings.Contains(err.Error(), "test image envdump: compiling ./test/images/envdump") || !strings.Contains(err.Error(), "undefined: wrong") {
		t.Errorf("err = %v", err)
	}
}

func TestBuildNeedsPins(t *testing.T) {
	_, err := Build(t.Context(), newRepository(t), nil)
	if err == nil || !strings.Contains(err.Error(), "test image busybox: no Debian packages are pinned") {
		t.Errorf("err = %v", err)
	}
}

// The script needs an awk with ENVIRON, which every awk has; the image has busybox's.
func TestPrintenvPrintsAnyName(t *testing.T) {
	script := filepath.Join(t.TempDir(), "printenv.awk")
	write(t, script, string(printenv), 0o755)
	for _, tc := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"a name that is no shell variable", []string{"a.b-c"}, "1\\n2\n", 0},
		{"several names", []string{"EMPTY", "X"}, "\ny=z\n", 0},
		{"a name that is not set", []string{"X", "NOPE"}, "y=z\n", 1},
		{"all", nil, "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command("awk", append([]string{"-f", script}, tc.args...)...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), `a.b-c=1\n2`, "EMPTY=", "X=y=z"}
			out, _ := cmd.Output()
			if tc.args == nil {
				lines := strings.Split(string(out), "\n")
				for _, want := range []string{`a.b-c=1\n2`, "EMPTY=", "X=y=z"} {
					if !slices.Contains(lines, want) {
						t.Errorf("printed %q, want the line %q", out, want)
					}
				}
			} else if string(out) != tc.want {
				t.Errorf("printed %q, want %q", out, tc.want)
			}
			if got := cmd.ProcessState.ExitCode(); got != tc.code {
				t.Errorf("exit status %d, want %d", got, tc.code)
			}
		})
	}
}
