package nodeimage

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/image/imagetest"
	"podenv.dev/hack/internal/series"
)

// goBuilds is a go command that writes the file of `go build -o` instead of compiling: a
// script that prints its name, and of ctr one that prints a runtime spec. What it is asked
// to build is in the calls, with cgo's state.
const goBuilds = `echo "CGO_ENABLED=$CGO_ENABLED $*" >>"$FAKE/calls"
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\n[ "$*" != "oci spec" ] || echo '"'"'{"process":{"cwd":"/two"}}'"'"'\n# %s\n' "$2" >"$2"
chmod +x "$2"`

// debianRoot has what Debian's packages bring for containers.
func debianRoot(t testing.TB) []byte {
	headers := slices.Clone(smallRoot)
	for _, name := range []string{"bin/containerd", "bin/containerd-stress", "bin/ctr", "bin/runc", "bin/runcon", "sbin/runc"} {
		header := headers[slices.IndexFunc(headers, func(h tar.Header) bool { return h.Name == "./etc/hostname" })]
		header.Name = "./usr/" + name
		headers = append(headers, header)
	}
	return rootfsTar(t, headers, image.Epoch)
}

func TestNodesHaveTheContainerRuntimeOfTheirMinor(t *testing.T) {
	l := fakeRepository(t)
	for _, program := range runtimePrograms {
		if err := os.MkdirAll(filepath.Join(l.Root, program.Dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, calls := fakeCommands(t, map[string]string{"go": goBuilds})
	const spec1, spec2 = `{"process":{}}`, `{"process":{"cwd":"/two"}}`
	debians := []string{"usr/bin/containerd", "usr/bin/containerd-stress", "usr/bin/ctr", "usr/bin/runc", "usr/sbin/runc"}
	links := []string{"usr/local/bin/containerd", "usr/local/bin/containerd-shim-runc-v2"}
	programs := append(links, "usr/local/sbin/runc")
	for _, tc := range []struct {
		minor, spec         string
		links, files, lacks []string
		packages            bool
	}{
		{"v1.29", spec1, links, append(debians, "usr/local/bin/ctr"), programs[2:], false},
		{"v1.32", spec1, links, append(debians, "usr/local/bin/ctr"), programs[2:], false},
		{"v1.33", spec2, nil, append(programs, "usr/local/bin/ctr"), debians, true},
		{"v1.40", spec2, nil, append(programs, "usr/local/bin/ctr"), debians, true},
	} {
		t.Run(tc.minor, func(t *testing.T) {
			s := series.Series{Name: tc.minor}
			files, leftOut, err := runtimeFiles(t.Context(), l, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := writeBase(&out, bytes.NewReader(debianRoot(t)), files, leftOut); err != nil {
				t.Fatal(err)
			}
			got := imagetest.Tar(t, &out)
			for _, name := range tc.links {
				if got[name].Linkname != "/usr/bin/"+filepath.Base(name) {
					t.Errorf("%s is no link to Debian's", name)
				}
			}
			for _, name := range tc.files {
				if f, ok := got[name]; !ok || f.Linkname != "" {
					t.Errorf("the node has no file %s", name)
				}
			}
			for _, name := range tc.lacks {
				if _, ok := got[name]; ok {
					t.Errorf("the node has %s", name)
				}
			}
			if _, ok := got["usr/bin/runcon"]; !ok {
				t.Error("the node lacks /usr/bin/runcon of coreutils")
			}
			spec, err := containerdSpec([]byte(tc.spec))
			if err != nil {
				t.Fatal(err)
			}
			if s := string(got[criBase[1:]].Data); s != string(spec) {
				t.Errorf("containers start from %s, want %s", s, spec)
			}
			if packages := BuildPackages(s); slices.Contains(packages, "libseccomp-dev") != tc.packages {
				t.Errorf("the build needs the packages %v", packages)
			}
		})
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
	l := repository(t)
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
