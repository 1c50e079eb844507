package envfile

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// What the reader may not search hides what is in it: the answer is not that
// there is no file, which optional would forgive.
func TestReadForAReader(t *testing.T) {
	testCases := []struct {
		name  string
		setup func(v volume)
		path  string
		err   *Error
	}{
		{name: "a file in a directory that may not be searched", path: "dir/f", err: ErrPermissionDenied},
		{name: "no file in a directory that may not be searched", path: "dir/missing", err: ErrPermissionDenied},
		{name: "a link out of a directory that may not be searched", path: "dir/link", err: ErrPermissionDenied,
			setup: func(v volume) { v.link("dir/link", "../f") }},
		{name: "a step back from a directory that may not be searched", path: "link", err: ErrPermissionDenied,
			setup: func(v volume) { v.link("link", "dir/../f") }},
		{name: "a dot in a directory that may not be searched", path: "dir/.", err: ErrPermissionDenied},
		{name: "a link through a directory that may not be searched", path: "link", err: ErrPermissionDenied,
			setup: func(v volume) { v.link("link", "dir/f") }},
		{name: "a directory that may be searched, but not read", path: "dir/f",
			setup: func(v volume) { v.check(os.Chmod(v.path("dir"), 0o711)) }},
		{name: "a volume that may not be searched", path: "f", err: ErrPermissionDenied,
			setup: func(v volume) { v.check(os.Chmod(v.root, 0o700)) }},
		{name: "a file that may not be read", path: "f", err: ErrPermissionDenied,
			setup: func(v volume) { v.check(os.Chmod(v.path("f"), 0o600)) }},
		{name: "a link is never asked, only what it leads to", path: "link",
			setup: func(v volume) { v.link("link", "f") }},
		{name: "a FIFO that may not be read", path: "fifo", err: ErrNotRegular,
			setup: func(v volume) { v.check(unix.Mkfifo(v.path("fifo"), 0o600)) }},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			v := newVolume(t)
			v.file("f", inside)
			v.dir("dir")
			v.file("dir/f", inside)
			v.check(os.Chmod(v.path("dir"), 0o750))
			if tc.setup != nil {
				tc.setup(v)
			}
			if _, err := v.lookup("f", byKernel); err != nil {
				t.Fatalf("without a reader: %v", err)
			}
			_, err := v.lookup(tc.path, forStranger)
			if tc.err == nil {
				v.check(err)
				return
			}
			wantError(t, err, tc.err, 0)
		})
	}
}

var forStranger = way{resolve: walk, reader: stranger}

// The kernel is asked for the whole ACL, however long it is.
func TestReadForAReaderWithALongACL(t *testing.T) {
	v := newVolume(t)
	v.file("f", inside)
	entries := []aclTestEntry{{0x01, 6, aclNoID}}
	for uid := uint32(5000); uid < 5200; uid++ {
		entries = append(entries, aclTestEntry{0x02, 4, uid})
	}
	entries = append(entries, aclTestEntry{0x04, 0, aclNoID}, aclTestEntry{0x10, 4, aclNoID}, aclTestEntry{0x20, 0, aclNoID})
	v.setACL("f", aclOf(entries))
	for uid, want := range map[int64]error{5000: nil, 5199: nil, 5200: ErrPermissionDenied} {
		_, err := v.lookup("f", way{resolve: walk, reader: &Credentials{UID: id(uid), GID: id(uid)}})
		if !errors.Is(err, want) {
			t.Errorf("UID %d: want %v, got %v", uid, want, err)
		}
	}
}

// A directory that is swapped for one that the reader may not search, or a file
// for one that it may not read, is never read through the name that was
// allowed a moment ago.
func TestReadForAReaderWhileADirectoryIsSwapped(t *testing.T) {
	v := newVolume(t)
	v.dir("open")
	v.file("open/f", inside)
	v.dir("closed")
	v.file("closed/f", outside)
	v.check(os.Chmod(v.path("closed"), 0o700))
	v.check(unix.Renameat2(unix.AT_FDCWD, v.path("open"), unix.AT_FDCWD, v.path("closed"), unix.RENAME_EXCHANGE))
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, v.path("open"), unix.AT_FDCWD, v.path("closed"), unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
		}
	}()
	seen := map[string]int{}
	r := rand.New(rand.NewSource(1))
	for i := 0; i < 2000; i++ {
		got, err := v.lookup([]string{"open/f", "closed/./f"}[r.Intn(2)], forStranger)
		switch {
		case err == nil && got == "inside":
			seen["inside"]++
		case errors.Is(err, ErrPermissionDenied):
			seen["refused"]++
		default:
			t.Fatalf("got %q, %v", got, err)
		}
	}
	close(stop)
	v.check(<-done)
	if len(seen) < 2 {
		t.Errorf("want both an error and a value, saw %v", fmt.Sprint(seen))
	}
}
