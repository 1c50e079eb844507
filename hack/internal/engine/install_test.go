package engine

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// debian adds dpkg-query, which knows no package, and apt-get, which does body.
func (f *fake) debian(body string) {
	f.Script("dpkg-query", "exit 1")
	f.Script("apt-get", body)
}

const install = "apt-get --quiet install --yes --no-install-recommends"

func TestDockerIsInstalledWhereItIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		command string // that docker.io installs besides dockerd
		want    []string
	}{
		"with its command, as up to Debian 12":       {"docker", []string{install + " docker.io iptables"}},
		"and its command for itself since Debian 13": {"", []string{install + " docker.io iptables", install + " docker-cli"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.Link("mv")
			for _, command := range []string{"docker", "dockerd"} {
				f.Write(command, "#!/bin/sh\n")
				f.remove("bin/" + command)
			}
			body := `case "$*" in *docker-cli*) mv $F/docker $F/bin/docker;; *docker.io*) mv $F/dockerd $F/bin/dockerd;; esac`
			if test.command != "" {
				body += "\nmv $F/docker $F/bin/docker"
			}
			f.debian(body)
			if err := f.installDocker(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			got := f.Calls("apt-get")
			for i := range got {
				got[i] = strings.TrimSuffix(got[i], " apparmor") // where this kernel has it
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if _, err := exec.LookPath("docker"); err != nil {
				t.Error(err)
			}
		})
	}
}
