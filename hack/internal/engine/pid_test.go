package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// process starts a process called name, and returns its number as a pid file has it.
func (f *fake) process(name string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	sleep, err := os.ReadFile(f.Real("sleep"))
	if err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, sleep, 0o755); err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(path, "60")
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	// Its name is the one of the command only once it has been executed.
	for deadline := time.Now().Add(10 * time.Second); processName(cmd.Process.Pid) != name; {
		if time.Now().After(deadline) {
			f.t.Fatalf("process %d is called %q, want %q", cmd.Process.Pid, processName(cmd.Process.Pid), name)
		}
		runtime.Gosched()
	}
	return strconv.Itoa(cmd.Process.Pid)
}

func TestClearStaleRemovesOnlyPidFilesOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		pid  func(*fake) string
		kept bool
	}{
		"of a process that is gone":            {func(*fake) string { return "4194305" }, false}, // above the kernel's highest
		"of a process that is something else":  {func(*fake) string { return strconv.Itoa(os.Getpid()) }, false},
		"of a dockerd that runs":               {func(f *fake) string { return f.process("dockerd") + "\n" }, true},
		"of nobody, since it is not a number":  {func(*fake) string { return "x" }, true},
		"of nobody, since it is a half number": {func(*fake) string { return "-1" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.Write("run/docker.pid", test.pid(f))
			if err := f.clearStale(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(f.run, "docker.pid")); (err == nil) != test.kept {
				t.Errorf("docker.pid: %v, want it kept: %v", err, test.kept)
			}
		})
	}
}

func TestDaemonKeyNamesOneLifeOfOneDaemon(t *testing.T) {
	f := newFake(t)
	info := Info{ID: "ID", ServerVersion: "1"}
	f.Write("run/docker.pid", f.process("dockerd"))
	first := f.daemonKey(info)
	if again := f.daemonKey(info); again != first {
		t.Errorf("the key of the same daemon changed from %s to %s", first, again)
	}
	f.Write("run/docker.pid", f.process("dockerd"))
	if restarted := f.daemonKey(info); restarted == first {
		t.Error("a restarted daemon has the same key")
	}
	info.DefaultRuntime = "other"
	if other := f.daemonKey(info); other == first {
		t.Error("a daemon with another runtime has the same key")
	}
}
