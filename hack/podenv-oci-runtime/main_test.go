package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asRuntime makes this test binary be the runtime, so that it can be executed under
// a bounding set of the test's choice.
const asRuntime = "PODENV_TEST_OCI_RUNTIME"

func TestMain(m *testing.M) {
	if os.Getenv(asRuntime) != "" {
		main()
	}
	os.Exit(m.Run())
}

// runtime runs the runtime with args, under wrapper, with a runc that prints its arguments
// and exits with 7. It returns what was printed, and the exit status.
func runtime(t *testing.T, wrapper []string, args ...string) (printed string, status int) {
	t.Helper()
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"runc as $0: $*\"\nexit 7\n"
	if err := os.WriteFile(filepath.Join(bin, "runc"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := append(append(wrapper, self), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), asRuntime+"=1", "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestRuntimeBecomesRunc(t *testing.T) {
	out, status := runtime(t, nil, "--root", "/r", "delete", "--force", "a b")
	if status != 7 {
		t.Errorf("exit status %d, want runc's 7", status)
	}
	if want := "--root /r delete --force a b\n"; !strings.HasSuffix(out, want) {
		t.Errorf("runc got %q, want %q", out, want)
	}
}

func TestRuntimeFailsBeforeRunc(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"without a bundle":      {"", "config.json: no such file"},
		"with half a bundle":    {`{"process": {`, "config.json: unexpected EOF"},
		"with another document": {`[]`, "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.config != "" {
				if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(test.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, status := runtime(t, nil, "create", "--bundle", dir, "id"); status != 1 || !strings.Contains(out, test.want) {
				t.Errorf("exit status %d, said %q; want 1 and %q", status, out, test.want)
			}
		})
	}
}

// A process with a capability in each kind of set, and members that are not this command's:
// numbers that Go's types cannot hold, and what a future specification may have.
const (
	process = `{
		"args": ["sh", "-c", "a && b > c < d", "\u2028 é"],
		"env": ["CAP_SYS_TIME=CAP_SYS_TIME"],
		"capabilities": {
			"bounding": ["CAP_KILL", "CAP_SYS_TIME", "CAP_CHOWN"],
			"effective": ["CAP_SYS_TIME"],
			"ambient": ["CAP_FROM_THE_FUTURE", "CAP_KILL"],
			"inheritable": null
		},
		"rlimits": [{"type": "RLIMIT_NOFILE", "hard": 18446744073709551615, "soft": 184467440737095516150}],
		"future": {"CAP_SYS_TIME": [1.0, 1e400, null]}
	}`
	wantCapabilities = `{"bounding": ["CAP_KILL", "CAP_CHOWN"], "effective": [], "ambient": ["CAP_KILL"], "inheritable": null}`
)

func TestRuntimeRemovesWhatTheBoundingSetLacks(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and setpriv of util-linux, to take a capability from a process")
	}
	config := func(process string) string {
		return `{"ociVersion": "1.0.2", "process": ` + process + `, "linux": {"y": 1.50}}`
	}
	without := strings.Replace(process, "capabilities", "others", 1)
	wanted := func(process string) string {
		a, b := strings.Index(process, `{
			"bounding"`), strings.Index(process, `,
		"rlimits"`)
		return process[:a] + wantCapabilities + process[b:]
	}
	for name, test := range map[string]struct {
		args         []string // before the folder of the file
		file         string
		before, want string
	}{
		"of a container":          {[]string{"--log", "/l", "create", "--bundle"}, "config.json", config(process), config(wanted(process))},
		"of an exec":              {[]string{"--systemd-cgroup", "exec", "--process"}, "process.json", process, wanted(process)},
		"but not from what is no": {[]string{"run", "--bundle"}, "config.json", config(without), config(without)},
		"nor without a process":   {[]string{"run", "--bundle"}, "config.json", `{"linux": {}}`, `{"linux": {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, test.file)
			if err := os.WriteFile(path, []byte(test.before), 0o640); err != nil {
				t.Fatal(err)
			}
			target := dir
			if test.file == "process.json" {
				target = path
			}
			out, status := runtime(t, []string{setpriv, "--bounding-set=-sys_time"}, append(test.args, target, "id")...)
			if status != 7 {
				t.Fatalf("exit status %d, want runc's 7: %s", status, out)
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parse(t, []byte(test.want)), parse(t, after)); diff != "" {
				t.Errorf("the file (-want +got):\n%s", diff)
			}
			if stat, err := os.Stat(path); err != nil || stat.Mode() != 0o640 {
				t.Errorf("mode became %v (%v), want 0640", stat.Mode(), err)
			}
		})
	}
}

// parse reads JSON, with numbers as they are written.
func parse(t *testing.T, data []byte) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return value
}
