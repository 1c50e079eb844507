package envfile

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kubelet runs must not get the files of a pod. All opens of this package
// go through these.
func TestProgramsThatTheKubeletRunsGetNoDescriptor(t *testing.T) {
	v := newVolume(t)
	v.file("f", inside)
	root := v.open(".", unix.O_RDONLY)
	defer unix.Close(root)
	for name, open := range map[string]func() (int, error){
		"openPath":    func() (int, error) { return openPath(root, "f", 0) },
		"openBeneath": func() (int, error) { return openBeneath(root, "f", 0) },
		"openToRead":  func() (int, error) { return openToRead(v.path("f")) },
	} {
		fd, err := open()
		if name == "openBeneath" && isUnknown(err) {
			t.Logf("this kernel has no openat2: %v", err)
			continue
		}
		v.check(err)
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		v.check(err)
		if flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: the descriptor stays open in a program that is run", name)
		}
		v.check(unix.Close(fd))
	}
}

// A path is read up to its bounds, and not beyond them.
func TestBoundsOfAPath(t *testing.T) {
	// Each element of the path and of the targets of its links is a step.
	ofSteps := func(v volume, steps int) string {
		dots := steps - len([]string{"l0", "l1", "f"})
		v.link("l0", strings.Repeat("./", dots/2)+"l1")
		v.link("l1", strings.Repeat("./", dots-dots/2)+"f")
		return "l0"
	}
	ofBytes := func(_ volume, n int) string { return "." + strings.Repeat("/", n-len(".f")) + "f" }
	for _, tc := range []struct {
		name string
		path func(v volume, n int) string
		n    int
		want *Error
	}{
		{"3072 steps", ofSteps, 3072, nil},
		{"3073 steps", ofSteps, 3073, ErrLimitExceeded},
		{"4095 bytes", ofBytes, 4095, nil},
		{"4096 bytes", ofBytes, 4096, ErrLimitExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := newVolume(t)
			v.file("f", inside)
			_, err := v.lookup(tc.path(v, tc.n), byWalk)
			if tc.want == nil {
				v.check(err)
				return
			}
			wantError(t, err, tc.want, 0)
		})
	}
}
