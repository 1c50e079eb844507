package engine

import (
	"strings"
	"testing"
)

func TestRemedyOfTheDaemonsLog(t *testing.T) {
	for log, want := range map[string]string{
		"failed to create NAT chain DOCKER: iptables failed: table does not exist":   "update-alternatives",
		"pid file found, ensure docker is not running or delete /var/run/docker.pid": "another daemon",
		"Devices cgroup isn't mounted":                                               "cgroupfs-mount",
		"mkdir /var/lib/docker: no space left on device":                             "podenv doctor",
		"anything else": "fix what the log says",
	} {
		if got := remedyOf(log); !strings.Contains(got, want) {
			t.Errorf("remedy of %q is %q, want one with %q", log, got, want)
		}
	}
}
