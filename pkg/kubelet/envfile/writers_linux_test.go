package envfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onEachFileSystem runs a test on the file system for temporary files, in memory, and
// on each other file system where a lease counts.
func onEachFileSystem(t *testing.T, test func(t *testing.T, v volume)) {
	t.Helper()
	t.Run("temporary files", func(t *testing.T) {
		v := newVolume(t)
		var fs unix.Statfs_t
		v.check(unix.Statfs(v.root, &fs))
		if !leaseProves(uint32(fs.Type)) {
			t.Skip("a lease proves nothing on the file system for temporary files")
		}
		test(t, v)
	})
	t.Run("tmpfs", func(t *testing.T) {
		var fs unix.Statfs_t
		if err := unix.Statfs("/dev/shm", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
			t.Skipf("/dev/shm is not a tmpfs: %v", err)
		}
		dir, err := os.MkdirTemp("/dev/shm", "envfile-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		test(t, newVolumeIn(t, dir))
	})
	// The first two have the magic number of ext4.
	for _, name := range []string{"ext2", "ext3", "ext4", "xfs", "btrfs"} {
		t.Run(name, func(t *testing.T) { test(t, newVolumeIn(t, newFileSystem(t, name))) })
	}
}

// newFileSystem returns a directory with a new file system mounted on it.
func newFileSystem(t *testing.T, name string) string {
	t.Helper()
	if _, err := exec.LookPath("mkfs." + name); err != nil {
		t.Skipf("the file system cannot be made: %v", err)
	}
	dir, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// No file system needs more. It takes space when it is written only.
	if err := os.Truncate(image, 320<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs."+name, "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.%s: %v: %s", name, err, out)
	}
	if out, err := exec.Command("mount", "-t", name, "-o", "loop", image, dir).CombinedOutput(); err != nil {
		t.Skipf("the file system cannot be mounted: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// newOverlay returns a directory with an overlay mounted on it.
func newOverlay(t *testing.T) string {
	t.Helper()
	// The name of the test could have a comma in it, which separates mount options.
	dir, err := os.MkdirTemp("", "envfile-overlay-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(dir, "merged")
	options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("an overlay cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(merged, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return merged
}

// A value in these tests is one letter repeated, so that a mix of two shows.
func contentOf(letter byte) string {
	return "KEY=" + strings.Repeat(string(letter), MaxValueBytes) + "\n"
}

var errMix = errors.New("a mix of two states")

// readAtOnce reads the file without waiting for a writer.
func (v volume) readAtOnce() (letter byte, err error) {
	v.Helper()
	fd, err := open(context.Background(), v.root, "f", nil, walk)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	b := buffers.Get().(*buffer)
	defer b.release()
	data, err := b.readStable(ended, descriptor(fd))
	if err != nil {
		return 0, err
	}
	values, err := Parse(data, []string{"KEY"}, Options{})
	if err != nil {
		return 0, err
	}
	value, err := values.Lookup("KEY")
	if err != nil {
		return 0, err
	}
	if value != strings.Repeat(value[:1], MaxValueBytes) {
		return 0, errMix
	}
	return value[0], nil
}

// While someone can write to the file there is no value, and no mix of two ever.
func TestReadWhileTheFileHasAWriter(t *testing.T) {
	// Each begins to write and returns what ends it.
	writers := map[string]func(v volume) (end func()){
		"one pwrite after the other": func(v volume) func() {
			f := v.open("f", unix.O_WRONLY)
			return v.untilStopped(func(i int) error {
				_, err := unix.Pwrite(f, []byte(contentOf("ab"[i%2])), 0)
				return err
			}, func() { v.check(unix.Close(f)) })
		},
		"truncate and write": func(v volume) func() {
			f := v.open("f", unix.O_WRONLY)
			return v.untilStopped(func(i int) error {
				if err := unix.Ftruncate(f, 0); err != nil {
					return err
				}
				_, err := unix.Pwrite(f, []byte(contentOf("ab"[i%2])), 0)
				return err
			}, func() { v.check(unix.Close(f)) })
		},
		"a shared mapping, its descriptor closed": func(v volume) func() {
			f := v.open("f", unix.O_RDWR)
			size := len(contentOf('a'))
			mapped, err := unix.Mmap(f, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
			v.check(err)
			v.check(unix.Close(f))
			return v.untilStopped(func(i int) error {
				copy(mapped, contentOf("ab"[i%2]))
				return nil
			}, func() { v.check(unix.Munmap(mapped)) })
		},
		"a write that stalls half way": volume.stalledWrite,
	}
	for name, begin := range writers {
		t.Run(name, func(t *testing.T) {
			onEachFileSystem(t, func(t *testing.T, v volume) {
				v.file("f", contentOf('a'))
				end := sync.OnceFunc(begin(v))
				t.Cleanup(end)
				for i := 0; i < 2000; i++ {
					if _, err := v.readAtOnce(); !errors.Is(err, ErrUnstable) {
						t.Fatalf("reading %d: want ErrUnstable, got %v", i, err)
					}
				}
				end()
				if _, err := v.lookup("f", byWalk); err != nil {
					t.Errorf("without a writer: %v", err)
				}
			})
		})
	}
}

// Writers that open, write and close are seen between two writes only.
func TestReadWhileTheFileIsRewritten(t *testing.T) {
	writers := map[string]func(v volume, i int) error{
		"in place": func(v volume, i int) error {
			f, err := os.OpenFile(v.path("f"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.WriteString(f, contentOf("ab"[i%2]))
			return err
		},
		"truncated first": func(v volume, i int) error {
			return os.WriteFile(v.path("f"), []byte(contentOf("ab"[i%2])), 0o600)
		},
		"by a rename": func(v volume, i int) error {
			if err := os.WriteFile(v.path("next"), []byte(contentOf("ab"[i%2])), 0o600); err != nil {
				return err
			}
			return os.Rename(v.path("next"), v.path("f"))
		},
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			onEachFileSystem(t, func(t *testing.T, v volume) {
				v.readWhileWritten(write, name == "truncated first", true)
			})
			t.Run("overlay", func(t *testing.T) {
				v := newVolumeIn(t, newOverlay(t))
				v.readWhileWritten(write, name == "truncated first", false)
			})
		})
	}
}

// readWhileWritten reads the file again and again, beside a writer with pauses, until it has seen both
// values. It fails the test at a mix of two. Without leases, a write that stalls half way, because other processes
// keep the CPU busy, can show one: two equal readings cannot tell that.
func (v volume) readWhileWritten(write func(v volume, i int) error, truncates, leases bool) {
	v.Helper()
	v.file("f", contentOf('a'))
	// Pauses that are sometimes long enough for a reading; without leases the times may not be fresh.
	readings, pause := 3000, 100*time.Microsecond
	if !leases {
		readings, pause = 30_000, 12*time.Millisecond
	}
	var begun atomic.Int64 // when the last write began
	stop := sync.OnceFunc(v.untilStopped(func(i int) error {
		time.Sleep(time.Duration(i%5+1) * pause)
		begun.Store(time.Now().UnixNano())
		return write(v, i)
	}, func() {}))
	v.Cleanup(stop)
	seen := map[byte]int{}
	deadline := time.Now().Add(30 * time.Second)
	for i := 0; i < readings || len(seen) < 2; i++ {
		if time.Now().After(deadline) {
			v.Fatalf("waited for both values in %d readings, saw %v", i, seen)
		}
		letter, err := v.readAtOnce()
		switch {
		case err == nil:
			seen[letter]++
		case errors.Is(err, ErrUnstable), !leases && time.Since(time.Unix(0, begun.Load())) > 5*time.Millisecond && errors.Is(err, errMix):
		// The empty file of a truncation is a state too.
		case truncates && errors.Is(err, ErrKeyNotFound):
		default:
			v.Fatal(err)
		}
	}
	stop()
}

// On an overlay, the kernel grants a lease beside a mapping that can write to the
// file. It proves nothing there, so that none is taken.
func TestReadOnOverlay(t *testing.T) {
	v := newVolumeIn(t, newOverlay(t))
	v.file("f", contentOf('a'))
	f := v.open("f", unix.O_RDWR)
	if err := descriptor(f).lease(); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("want EOPNOTSUPP for a lease, got %v", err)
	}
	mapped, err := unix.Mmap(f, 0, len(contentOf('a')), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	v.check(err)
	v.check(unix.Close(f))
	// Twice, with the same times: nobody could tell that the file has a writer.
	if _, err := v.lookup("f", byWalk); err != nil {
		t.Errorf("a writer at rest: %v", err)
	}
	v.check(unix.Munmap(mapped))
	if _, err := v.lookup("f", byWalk); err != nil {
		t.Errorf("without a writer: %v", err)
	}
}

// A writer that keeps its descriptor open is not refused there: each reading is one state, or none.
func TestReadOnOverlayWhileTheFileHasAWriter(t *testing.T) {
	v := newVolumeIn(t, newOverlay(t))
	v.file("f", contentOf('a'))
	f := v.open("f", unix.O_WRONLY)
	t.Cleanup(func() { v.check(unix.Close(f)) }) // after the writer has stopped
	v.readWhileWritten(func(_ volume, i int) error {
		_, err := unix.Pwrite(f, []byte(contentOf("ab"[i%2])), 0)
		return err
	}, false, false)
}

// untilStopped calls write again and again, until the function that it returns
// is called.
func (v volume) untilStopped(write func(i int) error, end func()) (stop func()) {
	v.Helper()
	done, written := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				written <- nil
				return
			default:
			}
			if err := write(i); err != nil {
				written <- err
				return
			}
		}
	}()
	return func() {
		v.Helper()
		close(done)
		v.check(<-written)
		end()
	}
}

// stalledWrite begins one write of which the second half waits: its memory is
// missing until userfaultfd(2) brings it.
func (v volume) stalledWrite() (end func()) {
	v.Helper()
	content := []byte(contentOf('b'))
	page := os.Getpagesize()
	half := len(content) / 2 / page * page
	memory, err := unix.Mmap(-1, 0, 2*half, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	v.check(err)
	rest, err := unix.Mmap(-1, 0, half, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	v.check(err)
	copy(memory[:half], content)
	copy(rest, content[half:])

	const uffdAPI, uffdRegister, uffdCopy, missing = 0xc018aa3f, 0xc020aa00, 0xc028aa03, 1
	faults, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		v.Skipf("userfaultfd: %v", errno)
	}
	control := func(request uintptr, arg unsafe.Pointer) {
		v.Helper()
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, faults, request, uintptr(arg)); errno != 0 {
			v.Fatalf("ioctl %#x of userfaultfd: %v", request, errno)
		}
	}
	control(uffdAPI, unsafe.Pointer(&[3]uint64{0xaa}))
	second := uint64(uintptr(unsafe.Pointer(&memory[half])))
	control(uffdRegister, unsafe.Pointer(&[4]uint64{second, uint64(half), missing}))

	f := v.open("f", unix.O_WRONLY)
	written := make(chan error, 1)
	go func() {
		_, err := unix.Pwrite(f, memory, 0)
		written <- err
	}()
	// A fault, so that the write is stalled now.
	var message [32]byte
	_, err = unix.Read(int(faults), message[:])
	v.check(err)
	return func() {
		v.Helper()
		control(uffdCopy, unsafe.Pointer(&[5]uint64{second, uint64(uintptr(unsafe.Pointer(&rest[0]))), uint64(half)}))
		v.check(<-written)
		v.check(unix.Close(f))
		v.check(unix.Close(int(faults)))
		v.check(unix.Munmap(memory))
		v.check(unix.Munmap(rest))
	}
}
