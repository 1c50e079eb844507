package envfile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// writtenFile is a file in memory that someone writes while it is read: before
// each of the reader's calls, counted from 0, write is called.
type writtenFile struct {
	content string
	changed time.Time
	calls   int
	write   func(f *writtenFile, call int)
	failure error
	// leaseErr is what the kernel says to a lease, and lost that the lease ended early.
	leaseErr error
	lost     bool
}

func (f *writtenFile) turn() error {
	if f.write != nil {
		f.write(f, f.calls)
	}
	f.calls++
	return f.failure
}

func (f *writtenFile) state() (state, error) {
	err := f.turn()
	changed := unix.NsecToTimespec(f.changed.UnixNano())
	return state{size: int64(len(f.content)), mtime: changed, ctime: changed}, err
}

func (f *writtenFile) lease() error { return f.leaseErr }

func (f *writtenFile) endLease() bool { return !f.lost }

// readAt gives no more than 4 bytes at once, so that a writer gets in between.
func (f *writtenFile) readAt(p []byte, offset int) (int, error) {
	if err := f.turn(); err != nil {
		return 0, err
	}
	if offset >= len(f.content) {
		return 0, nil
	}
	return copy(p[:min(4, len(p))], f.content[offset:]), nil
}

func TestReadStableWithoutLeases(t *testing.T) {
	const before, after = "A=old-old-old\n", "A=new-new-new\n"
	longAgo := time.Now().Add(-time.Hour)
	tick := func(f *writtenFile) { f.changed = f.changed.Add(time.Millisecond) }
	// In these, call 0 asks for the state, and calls 1 to 5 are the first
	// reading of 14 bytes, 6 to 10 the second.
	testCases := []struct {
		name  string
		write func(f *writtenFile, call int)
		want  string
		err   *Error
	}{
		{name: "nobody writes", want: before},
		{name: "replaced between two reads", want: after, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content = after
				tick(f)
			}
		}},
		{name: "changed and changed back in each reading", want: before, write: func(f *writtenFile, call int) {
			switch call {
			case 3, 8:
				f.content = after
				tick(f)
			case 4, 9:
				f.content = before
				tick(f)
			}
		}},
		{name: "a write that had begun before goes on", want: after, write: func(f *writtenFile, call int) {
			// Its time is set when it begins, so that only the bytes change.
			if call == 3 {
				f.content = after
			}
		}},
		{name: "grows", want: before + after, write: func(f *writtenFile, call int) {
			if call == 5 {
				f.content = before + after
				tick(f)
			}
		}},
		{name: "shrinks", want: "A=\n", write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content = "A=\n"
				tick(f)
			}
		}},
		{name: "changes after it was read and before its state is asked for again", want: after, write: func(f *writtenFile, call int) {
			if call == 11 {
				f.content = after
				tick(f)
			}
		}},
		{name: "changed and changed back in each reading, all in the same tick of the clock", want: before, write: func(f *writtenFile, call int) {
			if call == 0 {
				f.changed = time.Now()
			}
			f.content = before
			if call%5 == 3 && time.Since(f.changed) < 10*time.Millisecond {
				f.content = after
			}
		}},
		{name: "never stops changing", err: ErrUnstable, write: func(f *writtenFile, call int) {
			f.content = []string{before, after}[call%2]
			tick(f)
		}},
		{name: "grows over the limit", err: ErrLimitExceeded, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content += strings.Repeat("\n", MaxFileBytes)
				tick(f)
			}
		}},
		{name: "the disk fails", err: ErrReadFailed, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.failure = unix.EIO
			}
		}},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newBuffer(t).readStable(context.Background(), &writtenFile{content: before, changed: longAgo, write: tc.write, leaseErr: unix.EINVAL})
			if tc.err != nil {
				wantError(t, err, tc.err, 0)
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("want %q, got %q, %v", tc.want, got, err)
			}
		})
	}
}

func TestReadStable(t *testing.T) {
	// 14 bytes in pieces of 4, and then the end of the file.
	const reading = 5
	testCases := []struct {
		name    string
		file    writtenFile
		calls   int
		err     *Error
		message string
	}{
		{name: "under a lease one reading, however new the file is", calls: reading, file: writtenFile{changed: time.Now()}},
		{name: "a lease that is always lost", calls: attempts * reading, file: writtenFile{lost: true}, err: ErrUnstable, message: "kept changing"},
		{name: "a writer, and the file is not read", calls: 0, file: writtenFile{leaseErr: unix.EAGAIN}, err: ErrUnstable, message: "a process holds the file open or mapped for writing"},
		{name: "a file system without leases, two readings", calls: 2*reading + 2, file: writtenFile{leaseErr: unix.EINVAL}},
		{name: "a kubelet that may not take leases, two readings", calls: 2*reading + 2, file: writtenFile{leaseErr: unix.EACCES}},
		{name: "an error is not retried", calls: 1, file: writtenFile{failure: unix.EIO}, err: ErrReadFailed, message: "could not read"},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			tc.file.content = "A=old-old-old\n"
			got, err := newBuffer(t).readStable(context.Background(), &tc.file)
			if tc.err != nil {
				wantError(t, err, tc.err, 0)
				if !strings.Contains(err.Error(), tc.message) {
					t.Errorf("want %q in: %v", tc.message, err)
				}
			} else if err != nil || string(got) != tc.file.content {
				t.Errorf("want %q, got %q, %v", tc.file.content, got, err)
			}
			if tc.file.calls != tc.calls {
				t.Errorf("want %d calls, got %d", tc.calls, tc.file.calls)
			}
		})
	}
}

// Read depends on what this shows of the kernel, on each file system that an
// emptyDir can be on.
func TestLease(t *testing.T) {
	onEachFileSystem(t, func(t *testing.T, v volume) {
		v.file("f", inside)
		opened := v.open("f", unix.O_RDONLY)
		defer unix.Close(opened)
		file := descriptor(opened)
		v.check(file.lease())
		if fd, err := unix.Open(v.path("f"), unix.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("the file could be opened for writing: %d, %v", fd, err)
		}
		if !file.endLease() {
			t.Error("the lease did not last")
		}
		if file.endLease() {
			t.Error("the lease was still there after its end")
		}

		wantWriter := func(what string) {
			t.Helper()
			if err := file.lease(); !errors.Is(err, unix.EAGAIN) {
				t.Errorf("%s: want EAGAIN, got %v", what, err)
			}
		}
		written := v.open("f", unix.O_RDWR)
		wantWriter("a descriptor for writing")
		mapped, err := unix.Mmap(written, 0, len(inside), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		v.check(err)
		v.check(unix.Close(written))
		wantWriter("a mapping, its descriptor closed")
		v.check(unix.Mprotect(mapped, unix.PROT_READ))
		wantWriter("a mapping that can be made writable again")
		v.check(unix.Munmap(mapped))
		if err := file.lease(); err != nil || !file.endLease() {
			t.Errorf("there is no writer any more: %v", err)
		}
	})
}

// They refuse leases for reasons of their own, with the error of a file that has a
// writer: a container would wait for ever.
func TestNoLeaseOnNetworkFileSystems(t *testing.T) {
	for name, fileSystem := range map[string]uint32{"NFS": unix.NFS_SUPER_MAGIC, "SMB": unix.SMB2_SUPER_MAGIC, "CIFS": unix.CIFS_SUPER_MAGIC} {
		if leaseProves(fileSystem) {
			t.Errorf("%s: a lease counts", name)
		}
	}
}

func (v volume) open(name string, flags int) int {
	v.Helper()
	fd, err := unix.Open(v.path(name), flags|unix.O_CLOEXEC, 0)
	v.check(err)
	return fd
}

func newBuffer(t testing.TB) *buffer {
	b := buffers.Get().(*buffer)
	t.Cleanup(b.release)
	return b
}

func TestFresh(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 500, time.UTC)
	testCases := []struct {
		name  string
		ctime time.Time
		want  bool
	}{
		{name: "changed in this very tick", ctime: now, want: true},
		{name: "changed a tick ago", ctime: now.Add(-10 * time.Millisecond), want: true},
		{name: "changed a while ago", ctime: now.Add(-30 * time.Millisecond), want: false},
		{name: "changed a second ago, in full seconds", ctime: now.Add(-time.Second - 500), want: true},
		{name: "changed a while ago, in full seconds", ctime: now.Add(-3*time.Second - 500), want: false},
		{name: "changed before the clock was set back an hour", ctime: now.Add(time.Hour), want: false},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			s := state{ctime: unix.NsecToTimespec(tc.ctime.UnixNano())}
			if got := s.fresh(now); got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}

func TestReadWipesItsBuffer(t *testing.T) {
	for name, leaseErr := range map[string]error{"one reading": nil, "two readings": unix.EINVAL} {
		t.Run(name, func(t *testing.T) {
			b := new(buffer)
			if _, err := b.readStable(context.Background(), &writtenFile{content: inside, leaseErr: leaseErr}); err != nil {
				t.Fatal(err)
			}
			b.release()
			if *b != (buffer{}) {
				t.Error("there is something left of the file")
			}
		})
	}
}
