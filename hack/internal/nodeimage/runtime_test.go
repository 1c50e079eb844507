package nodeimage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
)

func TestNodesHaveTheContainerRuntimeOfItsModules(t *testing.T) {
	l := fakeRepository(t)
	_, calls := fakeCommands(t, map[string]string{"go": goBuilds(t)})
	files, err := containerRuntime(t.Context(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]image.File{}
	for _, f := range files {
		got[f.Path] = f
	}
	for name := range runtimePrograms {
		if f := got[name]; f.Source == "" || f.Mode != 0o755 {
			t.Errorf("the node has no program %s", name)
		}
	}
	spec, err := containerdSpec([]byte(`{"process":{"cwd":"/two"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got[criBase].Data); s != string(spec) {
		t.Errorf("containers start from %s, want %s", s, spec)
	}
	// Nodes may have another C library than this host.
	i := slices.IndexFunc(calls(), func(c string) bool { return strings.Contains(c, "opencontainers/runc") && strings.HasPrefix(c, "CGO") })
	if i < 0 {
		t.Fatalf("runc was not built: %v", calls())
	}
	for _, want := range []string{"CGO_ENABLED=1", "-extldflags=-static", "seccomp,"} {
		if !strings.Contains(calls()[i], want) {
			t.Errorf("runc is built without %s: %s", want, calls()[i])
		}
	}
}

// kind's containerd starts from kind's unit, below /usr/local.
func TestRuntimeProgramsAreWhereKindHasThem(t *testing.T) {
	unit := string(kindFile(t, "/etc/systemd/system/containerd.service"))
	if !strings.Contains(unit, "ExecStart=/usr/local/bin/containerd\n") {
		t.Errorf("kind starts containerd from another path:\n%s", unit)
	}
	for file := range runtimePrograms {
		if dir := filepath.Dir(file); dir != "/usr/local/bin" && dir != "/usr/local/sbin" {
			t.Errorf("%s is not in the PATH that systemd gives services", file)
		}
	}
}

func TestPinsOfTheContainerRuntimeAreReleases(t *testing.T) {
	l := layout.MustFind()
	for _, program := range runtimePrograms {
		file := filepath.Join(l.Root, program.Dir, "go.mod")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mod, err := modfile.Parse(file, data, nil)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(mod.Require, func(r *modfile.Require) bool { return strings.HasPrefix(program.Package+"/", r.Mod.Path+"/") })
		if i < 0 || semver.Prerelease(mod.Require[i].Mod.Version) != "" {
			t.Errorf("%s requires no release of %s", file, program.Package)
		}
		if len(mod.Replace) > 0 {
			t.Errorf("%s replaces modules: what it builds is not what it says", file)
		}
	}
}
