package ociruntime

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// asRuntime makes this test binary be the runtime, so that it can be executed under
// a bounding set of the test's choice.
const asRuntime = "PODENV_TEST_OCI_RUNTIME"

func TestMain(m *testing.M) {
	if os.Getenv(asRuntime) != "" {
		os.Stderr.WriteString(Exec(os.Args[1:]).Error())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// runtimeWith runs the runtime with args, under wrapper, with a runc that prints its
// arguments and exits with 7. It returns what was printed, and the exit status.
func runtimeWith(t *testing.T, wrapper []string, args ...string) (printed string, status int) {
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

func TestExecBecomesRuncWithTheSameArgumentsAndStatus(t *testing.T) {
	out, status := runtimeWith(t, nil, "--root", "/r", "delete", "--force", "a b")
	if status != 7 {
		t.Errorf("exit status %d, want runc's 7", status)
	}
	if want := "--root /r delete --force a b\n"; !strings.HasSuffix(out, want) {
		t.Errorf("runc got %q, want %q", out, want)
	}
}

func TestExecWithoutABundleFailsBeforeRunc(t *testing.T) {
	out, status := runtimeWith(t, nil, "create", "--bundle", t.TempDir(), "id")
	if status != 1 {
		t.Errorf("exit status %d, want 1", status)
	}
	if !strings.Contains(out, "config.json: no such file") {
		t.Errorf("said %q", out)
	}
}

func TestExecTakesOutWhatTheBoundingSetLacks(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and setpriv of util-linux, to take a capability from a process")
	}
	bundle := t.TempDir()
	path := filepath.Join(bundle, "config.json")
	const before = `{"process":{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_TIME"],"ambient":["CAP_SYS_TIME"]}}}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	out, status := runtimeWith(t, []string{setpriv, "--bounding-set=-sys_time"}, "create", "--bundle", bundle, "id")
	if status != 7 {
		t.Fatalf("exit status %d, want runc's 7: %s", status, out)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"process":{"capabilities":{"ambient":[],"bounding":["CAP_KILL"]}}}`
	if string(after) != want {
		t.Errorf("config.json became %s, want %s", after, want)
	}
}
