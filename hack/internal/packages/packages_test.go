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

// dpkg has the version before also of a package that was removed: its scripts cannot know by it that they install anew.
func TestAKubeletThatIsInstalledAgainIsEnabledAsBefore(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("dpkg installs into a folder as root only")
	}
	dir, bin, root := t.TempDir(), t.TempDir(), t.TempDir()
	if _, err := Build(t.Context(), layout.MustFind(), []*build.Result{programs(t, "v1.33.13", "amd64"), programs(t, "v1.33.14", "amd64")}, released, dir, nil); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "etc/systemd/system/multi-user.target.wants/kubelet.service")
	for _, d := range []string{filepath.Join(root, "var/lib/dpkg"), filepath.Dir(link)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	systemctl := `#!/bin/sh
case "$*" in
preset*) ln -s /usr/lib/systemd/system/kubelet.service ` + link + ` ;;
*disable*) rm -f ` + link + ` ;;
esac`
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(systemctl), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dpkg := func(args ...string) {
		output(t, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless,architecture,depends,unsafe-io", "--log=" + filepath.Join(dir, "log")}, args...)...)
	}
	const first, second = "kubelet_1.33.13-1_amd64.deb", "kubelet_1.33.14-1_amd64.deb"
	for _, step := range []struct {
		what    string
		do      func()
		enabled bool // a link, which leads nowhere while the package is removed
	}{
		{"installed", func() { dpkg("--install", filepath.Join(dir, first)) }, true},
		{"upgraded", func() { dpkg("--install", filepath.Join(dir, second)) }, true},
		{"removed and installed again", func() { dpkg("--remove", "kubelet"); dpkg("--install", filepath.Join(dir, second)) }, true},
		{"disabled, removed and installed again", func() {
			if err := os.Remove(link); err != nil {
				t.Fatal(err)
			}
			dpkg("--remove", "kubelet")
			dpkg("--install", filepath.Join(dir, second))
		}, false},
		{"purged and installed again", func() { dpkg("--purge", "kubelet"); dpkg("--install", filepath.Join(dir, first)) }, true},
		{"removed, then purged", func() { dpkg("--remove", "kubelet"); dpkg("--purge", "kubelet") }, false},
	} {
		if step.do(); t.Failed() {
			return
		}
		if _, err := os.Lstat(link); (err == nil) != step.enabled {
			t.Errorf("%s: enabled %v, want %v", step.what, err == nil, step.enabled)
		}
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
