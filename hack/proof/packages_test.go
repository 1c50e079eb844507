package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/packages"
)

// packagesInstall installs the Debian packages in a clean Debian and removes them, and lets rpm check
// its own. The stock release's version stands for the packages of pkgs.k8s.io that they replace.
func packagesInstall(c *check) (err error) {
	if err := steps.Packages(c.ctx, "rpm"); err != nil {
		return err
	}
	_, date, err := built.value.Tree.Release(c.ctx)
	if err != nil {
		return err
	}
	stock := *built.value.Build
	stock.Version = built.value.Tree.Series.Release
	dirs := map[string]*build.Result{"new": built.value.Build, "again": built.value.Build, "stock": &stock}
	root := c.TempDir()
	for dir, b := range dirs {
		if _, err := packages.Build(c.ctx, repo, []*build.Result{b}, date, filepath.Join(root, dir), c.step); err != nil {
			return err
		}
	}
	c.part("two runs make equal packages", func() error {
		first, err := os.ReadFile(filepath.Join(root, "new", packages.Sums))
		if err != nil {
			return err
		}
		second, err := os.ReadFile(filepath.Join(root, "again", packages.Sums))
		if err == nil && string(first) != string(second) {
			err = fmt.Errorf("the digests differ:\n%s\n%s", first, second)
		}
		return err
	})
	c.part("rpm reads its packages", func() error { return c.rpmReads(filepath.Join(root, "new")) })
	c.part("rpm sorts their versions", c.rpmSorts)

	const debianImage = "podenv/debian:proof"
	e := built.value.Engine
	defer func() {
		clean, cancel := c.whatever()
		defer cancel()
		err = errors.Join(err, deleteImages(clean, e, debianImage))
	}()
	rootfs, err := debian.Nodes.RootFS(c.ctx, repo, c.step)
	if err != nil {
		return err
	}
	c.step.Now("importing Debian")
	if err := e.Docker(c.ctx, "import", rootfs, debianImage).Run(); err != nil {
		return err
	}
	c.part("dpkg installs, upgrades, verifies and removes its packages", func() error {
		return e.Docker(c.ctx, "run", "--rm", "--network=none", "--volume", root+":/packages:ro", debianImage,
			"bash", "-euxo", "pipefail", "-c", inDebian, "bash", built.value.Build.Version).Log(c.step.Log()).Run()
	})
	return nil
}

// inDebian installs the stock release's packages, edits a configuration file, and upgrades. $1 is
// the version of the new programs.
const inDebian = `
list() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /packages -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -print | sort; }
list > /tmp/before
dpkg --install /packages/stock/*.deb
[ "$(systemctl is-enabled kubelet)" = enabled ]
echo KUBELET_EXTRA_ARGS=--v=4 > /etc/default/kubelet
systemctl disable kubelet
dpkg --install /packages/new/*.deb
[ "$(cat /etc/default/kubelet)" = KUBELET_EXTRA_ARGS=--v=4 ]
[ "$(systemctl is-enabled kubelet || :)" = disabled ] # an upgrade leaves it as it was
systemctl enable kubelet
[ "$(kubelet --version)" = "Kubernetes $1" ]
[ "$(kubeadm version --output=short)" = "$1" ]
kubectl version --client | grep --fixed-strings "$1"
[ "$(dpkg --verify kubelet kubeadm kubectl)" = '??5?????? c /etc/default/kubelet' ]
[ "$(stat --format='%a %U %G' /usr/bin/kubelet /usr/lib/systemd/system/kubelet.service | uniq | tr '\n' ,)" = '755 root root,644 root root,' ]
systemd-analyze verify kubelet.service
grep --quiet KUBELET_KUBEADM_ARGS /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf
dpkg --remove kubelet kubeadm kubectl
[ ! -e /etc/systemd/system/multi-user.target.wants/kubelet.service ] # the link leads nowhere
[ -e /etc/default/kubelet ] # until it is purged
dpkg --install /packages/new/*.deb
[ "$(systemctl is-enabled kubelet)" = enabled ] # as before
dpkg --purge kubelet kubeadm kubectl
list > /tmp/after
diff /tmp/before /tmp/after
`

// rpmReads checks the digests, files and requirements of the packages in dir as rpm reads them.
func (c *check) rpmReads(dir string) error {
	for name, want := range map[string][]string{
		"kubelet": {"/usr/bin/kubelet", "/usr/lib/systemd/system/kubelet.service", "/etc/sysconfig/kubelet", "util-linux", "disable kubelet.service"},
		"kubeadm": {"/usr/bin/kubeadm", "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf", "util-linux"},
		"kubectl": {"/usr/bin/kubectl"},
	} {
		files, err := filepath.Glob(filepath.Join(dir, name+"-*.rpm"))
		if err != nil || len(files) != 1 {
			return fmt.Errorf("%s has packages %q of %s, error %w", dir, files, name, err)
		}
		if out, err := c.command("rpm", "--checksig", "--verbose", files[0]).Output(); err != nil || !strings.Contains(out, "digest: OK") {
			return fmt.Errorf("%s: %w", out, err)
		}
		out, err := c.command("rpm", "--query", "--package", "--list", "--requires", "--scripts", files[0]).Output()
		if err != nil {
			return err
		}
		for _, line := range want {
			if !strings.Contains(out, line+"\n") {
				return fmt.Errorf("rpm reads of %s:\n%s\nwant %s", name, out, line)
			}
		}
		stamp, err := c.command("rpm", "--query", "--package", "--queryformat=%{BUILDTIME} %{BUILDHOST} %{LICENSE}", files[0]).Output()
		if _, date, dateErr := built.value.Tree.Release(c.ctx); err == nil && stamp != fmt.Sprintf("%d podenv.dev Apache-2.0", date.Unix()) {
			err = errors.Join(dateErr, fmt.Errorf("%s is stamped %s", name, stamp))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rpmSorts compares versions with rpm, as TestVersionsSortBetweenThoseOfReleases does with dpkg.
func (c *check) rpmSorts() error {
	order := []string{"1.33.13-150500.1.1", "1.33.13+podenv.9-1", "1.33.13+podenv.25-1", "1.33.13+podenv.25.dirty-1", "1.33.13+podenv.26-1", "1.33.14-150500.1.1"}
	for i := range order[1:] {
		out, err := c.command("rpm", "--eval", fmt.Sprintf("%%{lua:print(rpm.vercmp(%q, %q))}", order[i], order[i+1])).Output()
		if err == nil && out != "-1" {
			err = fmt.Errorf("rpm compares %s with %s: %s", order[i], order[i+1], out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
