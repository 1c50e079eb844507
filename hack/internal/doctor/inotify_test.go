package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

// kernelWith makes proc the folder of a kernel with these limits, and of a process that has instances
// of inotify open, and a socket.
func kernelWith(t *testing.T, limits map[string]string, instances int) {
	t.Helper()
	was := proc
	t.Cleanup(func() { proc = was })
	proc = t.TempDir()
	for name, value := range limits {
		testutil.WriteFile(t, inotifyFile(name), value)
	}
	for i := range instances + 1 {
		fd := filepath.Join(proc, "1", "fd", strconv.Itoa(i))
		target := "anon_inode:inotify"
		if i == instances {
			target = "socket:[1]"
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(fd), 0o755), os.Symlink(target, fd)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInotify(t *testing.T) {
	for name, test := range map[string]struct {
		instances, watches    string
		used                  int
		status, found, remedy string
	}{
		"the kernel's defaults":     {"128\n", "65536\n", 69, OK, "128 instances, 69 of them in use, 65536 watches", ""},
		"others take the instances": {"128\n", "65536\n", 70, Warn, "128 instances, 70 of them in use", "max_user_instances=512"},
		"few watches":               {"512\n", "8192\n", 0, Warn, "8192 watches", "max_user_watches=524288"},
		"no number":                 {"x\n", "8192\n", 0, Warn, "invalid syntax", "/proc"},
	} {
		t.Run(name, func(t *testing.T) {
			kernelWith(t, map[string]string{"max_user_instances": test.instances, "max_user_watches": test.watches}, test.used)
			inotify().want(t, test.status, test.found, test.remedy)
		})
	}
	kernelWith(t, nil, 0)
	inotify().want(t, Warn, "no such file", "/proc")
}

func TestInotifyForACluster(t *testing.T) {
	for _, test := range []struct {
		controlPlanes, workers, used int

		wantErr string
	}{
		{1, 0, 102, ""},
		{1, 0, 103, "max_user_instances is 128, 103 of them are in use, and a cluster of 1 nodes takes 26"},
		{1, 2, 76, ""},
		{1, 2, 77, "takes 52"},
		{3, 0, 50, ""},
		{3, 0, 51, "a cluster of 3 nodes takes 78"},
	} {
		kernelWith(t, map[string]string{"max_user_instances": "128\n", "max_user_watches": "65536\n"}, test.used)
		err := InotifyFor(test.controlPlanes, test.workers)
		if test.wantErr == "" {
			if err != nil {
				t.Errorf("%d workers, %d in use: %v", test.workers, test.used, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "too few inotify instances") || !strings.Contains(err.Error(), test.wantErr) || !strings.Contains(err.Error(), "sysctl fs.inotify.max_user_instances=512") {
			t.Errorf("%d workers, %d in use: %v, want %q and the sysctl", test.workers, test.used, err, test.wantErr)
		}
	}
	kernelWith(t, nil, 0)
	if err := InotifyFor(1, 1); err != nil {
		t.Errorf("what cannot be read is no reason to refuse: %v", err)
	}
}

func TestRaiseInotify(t *testing.T) {
	kernelWith(t, map[string]string{"max_user_instances": "128\n", "max_user_watches": "1000000\n"}, 0)
	RaiseInotify()
	if l, err := readLimits(); err != nil || l.instances != 512 || l.watches != 1000000 {
		t.Errorf("raised to %s (%v), want 512 instances, and no fewer watches than before", l, err)
	}
	kernelWith(t, nil, 0)
	RaiseInotify() // a kernel without inotify: nothing to raise, and nothing made
}
