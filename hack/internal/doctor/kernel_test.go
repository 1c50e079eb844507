package doctor

import (
	"path/filepath"
	"testing"
)

func TestKernel(t *testing.T) {
	for release, test := range map[string]struct{ status, found, remedy string }{
		"6.18.44-fc-v669\n":   {OK, "Linux 6.18.44-fc-v669", ""},
		"6.3.0\n":             {OK, "Linux 6.3.0", ""},
		"6.1.0-40-amd64\n":    {OK, "too old for user namespaces", ""},
		"5.4.0-200-generic\n": {OK, "too old for user namespaces", ""},
		"5.3.18\n":            {Warn, "v1.35 and later ask for 5.4", "--series"},
		"4.18.0-553.el8\n":    {Fail, "older than 4.19", "newer kernel"},
		"unknown\n":           {Fail, "Linux unknown", "newer kernel"},
	} {
		t.Run(release, func(t *testing.T) {
			kernel(filepath.Join(files(t, map[string]string{"osrelease": release}), "osrelease")).want(t, test.status, test.found, test.remedy)
		})
	}
	kernel("/nonexistent").want(t, Warn, "no such file", "/proc")
}

func TestIptables(t *testing.T) {
	for name, test := range map[string]struct {
		commands              map[string]string
		status, found, remedy string
	}{
		"works":             {map[string]string{"iptables": ""}, OK, "nat table", ""},
		"is not installed":  {nil, Warn, "not installed", "apt-get install iptables"},
		"works as legacy":   {map[string]string{"iptables": "exit 3", "iptables-legacy": "", "iptables-nft": "exit 3"}, Fail, "but for iptables-legacy", "--set iptables /usr/sbin/iptables-legacy"},
		"works as nft":      {map[string]string{"iptables": "exit 3", "iptables-legacy": "exit 3", "iptables-nft": ""}, Fail, "but for iptables-nft", "--set iptables /usr/sbin/iptables-nft"},
		"works in no shape": {map[string]string{"iptables": "exit 3", "iptables-legacy": "exit 3", "iptables-nft": "exit 3"}, Fail, "no nat table", "modprobe"},
	} {
		t.Run(name, func(t *testing.T) {
			commands(t, test.commands)
			natTable(t.Context()).want(t, test.status, test.found, test.remedy)
		})
	}
}
