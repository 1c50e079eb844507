package doctor

import (
	"path/filepath"
	"testing"
)

func TestForwarding(t *testing.T) {
	for name, test := range map[string]struct {
		value                 string
		serves                bool
		status, found, remedy string
	}{
		"on":                      {"1\n", true, OK, "on", ""},
		"off before dockerd runs": {"0\n", false, OK, "until dockerd starts", ""},
		"off while dockerd runs":  {"0\n", true, Fail, "off", "sysctl net.ipv4.ip_forward=1"},
		"not a number":            {"\n", true, Warn, "invalid syntax", "/proc"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(files(t, map[string]string{"ip_forward": test.value}), "ip_forward")
			forwarding(path, test.serves).want(t, test.status, test.found, test.remedy)
		})
	}
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

func TestPorts(t *testing.T) {
	ports().want(t, OK, "127.0.0.1", "")
}
