package packages

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/layout"
)

var released = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// programs returns a build of small programs.
func programs(t *testing.T, version, arch string) *build.Result {
	t.Helper()
	b := &build.Result{Version: version, Arch: arch, Binaries: map[string]string{}}
	dir := t.TempDir()
	for _, c := range Components {
		b.Binaries[c] = filepath.Join(dir, c)
		if err := os.WriteFile(b.Binaries[c], []byte("#!/bin/sh\necho "+c+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestEqualProgramsGiveEqualPackages(t *testing.T) {
	var sums [2][]byte
	for i := range sums {
		dir := t.TempDir()
		paths, err := Build(t.Context(), layout.MustFind(), []*build.Result{programs(t, "v1.33.13+podenv.25", "amd64"), programs(t, "v1.33.13+podenv.25", "arm64")}, released, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) != 12 {
			t.Errorf("there are %d packages, want 3 in 2 formats for 2 architectures: %q", len(paths), paths)
		}
		if sums[i], err = os.ReadFile(filepath.Join(dir, Sums)); err != nil {
			t.Fatal(err)
		}
		check := exec.Command("sha256sum", "--check", "--strict", Sums)
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("sha256sum: %v\n%s", err, out)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // another second
	}
	if !bytes.Equal(sums[0], sums[1]) {
		t.Errorf("two builds differ:\n%s\n%s", sums[0], sums[1])
	}
	for _, name := range []string{"kubelet_1.33.13+podenv.25-1_amd64.deb", "kubeadm_1.33.13+podenv.25-1_arm64.deb", "kubectl-1.33.13+podenv.25-1.x86_64.rpm", "kubelet-1.33.13+podenv.25-1.aarch64.rpm"} {
		if !strings.Contains(string(sums[0]), "  "+name+"\n") {
			t.Errorf("%s does not have %s:\n%s", Sums, name, sums[0])
		}
	}
}

func TestDebianPackagesHaveTheFilesOfANode(t *testing.T) {
	dir := t.TempDir()
	if _, err := Build(t.Context(), layout.MustFind(), []*build.Result{programs(t, "v1.33.13", "amd64")}, released, dir, nil); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"kubelet": {"-rwxr-xr-x ./usr/bin/kubelet", "-rw-r--r-- ./usr/lib/systemd/system/kubelet.service", "-rw-r--r-- ./etc/default/kubelet",
			"drwxr-xr-x ./etc/kubernetes/manifests/", "drwxr-xr-x ./var/lib/kubelet/", "-rw-r--r-- ./usr/share/doc/kubelet/copyright"},
		"kubeadm": {"-rwxr-xr-x ./usr/bin/kubeadm", "-rw-r--r-- ./usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"},
		"kubectl": {"-rwxr-xr-x ./usr/bin/kubectl"},
	} {
		file := filepath.Join(dir, name+"_1.33.13-1_amd64.deb")
		var have []string
		for line := range strings.Lines(output(t, "dpkg-deb", "--contents", file)) {
			f := strings.Fields(line)
			if f[1] != "root/root" {
				t.Errorf("%s: not root's: %s", name, line)
			}
			have = append(have, f[0]+" "+f[len(f)-1])
		}
		for _, want := range files {
			if !strings.Contains(strings.Join(have, "\n")+"\n", want+"\n") {
				t.Errorf("%s has %q, not %s", name, have, want)
			}
		}
	}
	if conffiles := output(t, "dpkg-deb", "--info", filepath.Join(dir, "kubelet_1.33.13-1_amd64.deb"), "conffiles"); conffiles != "/etc/default/kubelet\n" {
		t.Errorf("configuration files: %q", conffiles)
	}
}

func TestVersionsSortBetweenThoseOfReleases(t *testing.T) {
	dir := t.TempDir()
	version := func(of string) string {
		if _, err := Build(t.Context(), layout.MustFind(), []*build.Result{programs(t, of, "amd64")}, released, dir, nil); err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(output(t, "dpkg-deb", "--field", filepath.Join(dir, "kubelet_"+strings.TrimPrefix(of, "v")+"-1_amd64.deb"), "Version"))
	}
	order := []string{"1.33.13-1.1", version("v1.33.13+podenv.9"), version("v1.33.13+podenv.25"), version("v1.33.13+podenv.25.dirty"), version("v1.33.13+podenv.26"), "1.33.14-1.1"}
	for i := range order[1:] {
		output(t, "dpkg", "--compare-versions", order[i], "lt", order[i+1])
	}
}

func TestNoDigestsOfPackagesThatAreNotThere(t *testing.T) {
	l, b, dir := layout.MustFind(), programs(t, "v1.33.13", "amd64"), t.TempDir()
	if _, err := Build(t.Context(), l, []*build.Result{b}, released, dir, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.Version = "v1.33.14"
	if _, err := Build(ctx, l, []*build.Result{b}, released, dir, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want that the context has ended", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 6 { // the packages of v1.33.13
		t.Errorf("an interrupted build leaves %q", left)
	}
}
