package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestInotify(t *testing.T) {
	for name, test := range map[string]struct {
		instances, watches    string
		used                  int
		status, found, remedy string
	}{
		"the kernel's defaults":     {"128\n", "65536\n", 20, OK, "128 instances, 20 of them in use, 65536 watches", ""},
		"others take the instances": {"128\n", "65536\n", 69, Warn, "128 instances, 69 of them in use", "max_user_instances=512"},
		"few instances":             {"127\n", "524288\n", 0, Warn, "127 instances", "max_user_instances=512"},
		"few watches":               {"512\n", "8192\n", 0, Warn, "8192 watches", "max_user_watches=524288"},
		"no number":                 {"x\n", "8192\n", 0, Warn, "invalid syntax", "/proc"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, map[string]string{"max_user_instances": test.instances, "max_user_watches": test.watches})
			proc := t.TempDir()
			for i := range test.used + 1 {
				fd := filepath.Join(proc, "1", "fd", strconv.Itoa(i))
				target := "anon_inode:inotify"
				if i == test.used {
					target = "socket:[1]"
				}
				if err := errors.Join(os.MkdirAll(filepath.Dir(fd), 0o755), os.Symlink(target, fd)); err != nil {
					t.Fatal(err)
				}
			}
			inotify(dir, proc).want(t, test.status, test.found, test.remedy)
		})
	}
	inotify(t.TempDir(), t.TempDir()).want(t, Warn, "no such file", "/proc")
}

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
