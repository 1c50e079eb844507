package envfile

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// way is one of the ways to a file. All have to give the same results.
type way struct {
	resolve resolver
	reader  *Credentials
}

var (
	byKernel = way{resolve: wholePath}
	byWalk   = way{resolve: walk}

	ways = map[string]way{
		"openat2":                      byKernel,
		"walk":                         byWalk,
		"walk without openat2":         {resolve: walkWithoutOpenat2},
		"for a user":                   forStranger,
		"for root in a user namespace": {resolve: walk, reader: &Credentials{UID: id(0), GID: id(0), UserNamespace: true}},
	}
)

// volume is the root of a volume, with something beside it to break out to.
type volume struct {
	testing.TB
	root string
}

func newVolume(t testing.TB) volume {
	t.Helper()
	return newVolumeIn(t, t.TempDir())
}

func newVolumeIn(t testing.TB, node string) volume {
	t.Helper()
	v := volume{TB: t, root: filepath.Join(node, "volume")}
	v.dir(".")
	v.file("../node.env", outside)
	return v
}

func (v volume) path(name string) string { return filepath.Join(v.root, name) }

func (v volume) check(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

func (v volume) dir(name string) { v.Helper(); v.check(os.MkdirAll(v.path(name), 0o755)) }

func (v volume) file(name, content string) {
	v.Helper()
	v.check(os.WriteFile(v.path(name), []byte(content), 0o644))
}

func (v volume) link(name, target string) { v.Helper(); v.check(os.Symlink(target, v.path(name))) }

func (v volume) lookup(path string, by way) (string, error) {
	values, err := read(context.Background(), v.root, path, []string{"KEY"}, Options{Reader: by.reader}, by.resolve)
	if err != nil {
		return "", err
	}
	return values.Lookup("KEY")
}

func TestRead(t *testing.T) {
	testCases := []struct {
		name  string
		setup func(v volume)
		path  string
		want  string
		err   *Error
	}{
		{name: "a file", path: "f", want: "inside"},
		{name: "a file in a directory", path: "dir/f", want: "inside"},
		{name: "slashes and dots that do not matter", path: ".//dir/.//f", want: "inside"},
		{name: "a name that starts with two dots", path: "..data/f", want: "inside"},
		{name: "a link to a file beside it", path: "link", want: "inside",
			setup: func(v volume) { v.link("link", "f") }},
		{name: "a link through a link, as projected volumes have", path: "config.env", want: "inside",
			setup: func(v volume) { v.link("..now", "..data"); v.link("config.env", "..now/f") }},
		{name: "a link that steps back but stays inside", path: "dir/deep/link", want: "inside",
			setup: func(v volume) { v.dir("dir/deep"); v.link("dir/deep/link", ".././../dir/f") }},
		{name: "a link to the root of the volume", path: "dir/up/f", want: "inside",
			setup: func(v volume) { v.link("dir/up", "..") }},
		{name: "40 links, the most that Linux follows", path: "link39", want: "inside",
			setup: func(v volume) { v.links(40) }},
		{name: "a path 500 directories deep", path: strings.Repeat("d/", 500) + "f", want: "inside",
			setup: func(v volume) { v.dir(strings.Repeat("d/", 500)); v.file(strings.Repeat("d/", 500)+"f", inside) }},

		{name: "no file", path: "missing", err: ErrNotFound},
		{name: "no directory", path: "missing/f", err: ErrNotFound},
		{name: "a file for a directory", path: "f/f", err: ErrNotFound},
		{name: "a file with a slash after it", path: "f/", err: ErrNotFound},
		{name: "a file with a dot after it", path: "f/.", err: ErrNotFound},
		{name: "a link to nothing", path: "link", err: ErrNotFound,
			setup: func(v volume) { v.link("link", "missing") }},
		{name: "a link that steps back from a file", path: "link", err: ErrNotFound,
			setup: func(v volume) { v.link("link", "f/../f") }},
		{name: "no volume", path: "f", err: ErrNotFound,
			setup: func(v volume) { v.check(os.RemoveAll(v.root)) }},
		{name: "no key", path: "f", err: ErrKeyNotFound,
			setup: func(v volume) { v.file("f", "OTHER=1\n") }},

		{name: "attack: step back in the path", path: "../node.env", err: ErrOutsideVolume},
		{name: "attack: step back later in the path", path: "dir/../../node.env", err: ErrOutsideVolume},
		{name: "attack: step back that would stay inside", path: "dir/../f", err: ErrOutsideVolume},
		{name: "attack: absolute path", path: "/etc/hostname", err: ErrOutsideVolume},
		{name: "attack: empty path", path: "", err: ErrOutsideVolume},
		{name: "attack: NUL in the path", path: "f\x00g", err: ErrOutsideVolume},
		{name: "attack: absolute link to a file of the node", path: "link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", v.path("../node.env")) }},
		{name: "attack: absolute link to a directory of the node", path: "link/node.env", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", filepath.Dir(v.root)) }},
		{name: "attack: absolute link, though into the volume", path: "link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", v.path("f")) }},
		{name: "attack: link that steps out", path: "dir/link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("dir/link", "../../node.env") }},
		{name: "attack: chain of steps back", path: "link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", strings.Repeat("../", 100)+"etc/hostname") }},
		{name: "attack: link that steps out and back in", path: "link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", "../volume/f") }},
		{name: "attack: steps out over two links", path: "one/two/node.env", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("one", "dir/.."); v.link("two", "dir/../..") }},
		{name: "attack: magic link", path: "link", err: ErrOutsideVolume,
			setup: func(v volume) { v.link("link", "/proc/self/environ") }},
		{name: "attack: link to itself", path: "link", err: ErrLimitExceeded,
			setup: func(v volume) { v.link("link", "link") }},
		{name: "attack: 41 links", path: "link40", err: ErrLimitExceeded,
			setup: func(v volume) { v.links(41) }},
		{name: "attack: element too long for any file system", path: strings.Repeat("x", 300), err: ErrLimitExceeded},
		{name: "attack: path too long for the kernel", path: strings.Repeat("x/", 3000) + "f", err: ErrLimitExceeded},
		{name: "attack: links that multiply", path: "link", err: ErrLimitExceeded,
			setup: func(v volume) {
				v.link("a", strings.Repeat("dir/../", 500)+"dir")
				v.link("link", strings.Repeat("a/../", 500)+"f")
			}},

		{name: "attack: directory", path: "dir", err: ErrNotRegular},
		{name: "attack: root of the volume", path: ".", err: ErrNotRegular},
		{name: "attack: FIFO", path: "fifo", err: ErrNotRegular,
			setup: func(v volume) { v.check(unix.Mkfifo(v.path("fifo"), 0o600)) }},
		{name: "attack: link to a FIFO", path: "link", err: ErrNotRegular,
			setup: func(v volume) { v.check(unix.Mkfifo(v.path("fifo"), 0o600)); v.link("link", "fifo") }},
		{name: "attack: socket", path: "s", err: ErrNotRegular, setup: volume.socket},
		{name: "attack: character device", path: "zero", err: ErrNotRegular,
			setup: func(v volume) { v.device("zero", unix.S_IFCHR, 1, 5) }},
		{name: "attack: terminal", path: "tty", err: ErrNotRegular,
			setup: func(v volume) { v.device("tty", unix.S_IFCHR, 5, 0) }},
		{name: "attack: block device", path: "loop", err: ErrNotRegular,
			setup: func(v volume) { v.device("loop", unix.S_IFBLK, 7, 0) }},
		{name: "attack: 10 GB sparse file", path: "f", err: ErrLimitExceeded,
			setup: func(v volume) { v.check(os.Truncate(v.path("f"), 10<<30)) }},
		{name: "attack: 64 KiB and one byte", path: "f", err: ErrLimitExceeded,
			setup: func(v volume) { v.file("f", strings.Repeat("\n", MaxFileBytes+1)) }},
	}
	for name, by := range ways {
		for _, tc := range testCases {
			t.Run(name+"/"+tc.name, func(t *testing.T) {
				v := newVolume(t)
				v.dir("dir")
				v.dir("..data")
				v.file("f", inside)
				v.file("dir/f", inside)
				v.file("..data/f", inside)
				if tc.setup != nil {
					tc.setup(v)
				}
				before := openDescriptors(t)

				got, err := v.lookup(tc.path, by)

				if tc.err == nil && (got != tc.want || err != nil) {
					t.Errorf("want %q, got %q, %v", tc.want, got, err)
				}
				if tc.err != nil {
					wantError(t, err, tc.err, 0)
					if strings.Contains(err.Error(), filepath.Dir(v.root)) {
						t.Errorf("the error shows a path of the node: %v", err)
					}
				}
				if after := openDescriptors(t); after != before {
					t.Errorf("%d file descriptors open before, %d after", before, after)
				}
			})
		}
	}
}

func TestReadBesideManyFiles(t *testing.T) {
	files := 100_000
	if testing.Short() {
		files = 1000
	}
	v := newVolume(t)
	v.file("f", inside)
	for i := 0; i < files; i++ {
		v.check(unix.Mknod(v.path(fmt.Sprint("other", i)), unix.S_IFREG|0o644, 0))
	}
	for name, by := range ways {
		t.Run(name, func(t *testing.T) {
			if got, err := v.lookup("f", by); got != "inside" || err != nil {
				t.Errorf("want %q, got %q, %v", "inside", got, err)
			}
		})
	}
}

// links makes a chain of n links, link<n-1> the first, that ends at f.
func (v volume) links(n int) {
	v.Helper()
	target := "f"
	for i := 0; i < n; i++ {
		name := fmt.Sprint("link", i)
		v.link(name, target)
		target = name
	}
}

func (v volume) socket() {
	v.Helper()
	// The address of a socket is short: bind to it from its directory.
	dir, err := os.Open(v.root)
	v.check(err)
	defer dir.Close()
	listener, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/s", dir.Fd()))
	v.check(err)
	v.Cleanup(func() { listener.Close() })
}

func (v volume) device(name string, kind uint32, major, minor uint32) {
	v.Helper()
	err := unix.Mknod(v.path(name), kind|0o666, int(unix.Mkdev(major, minor)))
	if errors.Is(err, unix.EPERM) {
		v.Skip("making a device needs CAP_MKNOD")
	}
	v.check(err)
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// A container with a mount propagated to the node could put another file
// system into the volume, one that never answers for example.
func TestReadStaysInTheVolumesMount(t *testing.T) {
	for name, by := range ways {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.dir("mnt")
			v.dir("../elsewhere")
			v.file("../elsewhere/f", outside)
			v.link("link", "mnt/f")

			// In a mount namespace of its own, which ends with the thread.
			errs := make(chan error, 1)
			paths := []string{"mnt/f", "link"}
			results := make([]error, len(paths))
			go func() {
				runtime.LockOSThread()
				errs <- func() error {
					if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
						return err
					}
					if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
						return err
					}
					// A bind mount has the same device number as the volume.
					if err := unix.Mount(v.path("../elsewhere"), v.path("mnt"), "", unix.MS_BIND, ""); err != nil {
						return err
					}
					before := openDescriptors(t)
					for i, path := range paths {
						_, results[i] = v.lookup(path, by)
					}
					if after := openDescriptors(t); after != before {
						t.Errorf("%d file descriptors open before, %d after", before, after)
					}
					return nil
				}()
			}()
			if err := <-errs; errors.Is(err, unix.EPERM) {
				t.Skip("mounting needs CAP_SYS_ADMIN")
			} else if err != nil {
				t.Fatal(err)
			}
			for i, path := range paths {
				t.Run(path, func(t *testing.T) {
					wantError(t, results[i], ErrOutsideVolume, 0)
					// The kernel alone does not tell a mount from a step out of the volume.
					if name != "openat2" && results[i].Error() != errMount.Error() {
						t.Errorf("want %q, got %q", errMount, results[i])
					}
				})
			}
		})
	}
}

// The open of a file with a lease waits for its holder, 45 s by default.
func TestReadDoesNotWaitForALease(t *testing.T) {
	v := newVolume(t)
	v.file("f", inside)
	f, err := os.OpenFile(v.path("f"), os.O_WRONLY, 0)
	v.check(err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("the file system has no leases: %v", err)
	}
	start := time.Now()
	_, err = v.lookup("f", byKernel)
	wantError(t, err, ErrUnstable, 0)
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A workload that swaps a link between a file of its own and one of the node
// gets the one or an error, whenever the swap happens.
func TestReadWhileALinkIsSwapped(t *testing.T) {
	for name, by := range ways {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.dir("real")
			v.file("real/node.env", inside)
			v.link("to-inside", "real")
			v.link("to-outside", "..")
			v.link("swapped", "real")
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					target := []string{"real", ".."}[i%2]
					_ = os.Remove(v.path("next"))
					_ = os.Symlink(target, v.path("next"))
					_ = os.Rename(v.path("next"), v.path("swapped"))
				}
			}()
			seen := map[string]int{}
			deadline := time.Now().Add(10 * time.Second)
			for i := 0; i < 2000 || len(seen) < 2; i++ {
				if time.Now().After(deadline) {
					t.Fatalf("waited for both an error and a value, saw %v", seen)
				}
				got, err := v.lookup("swapped/node.env", by)
				switch {
				case err == nil && got == "inside":
					seen["inside"]++
				case errors.Is(err, ErrOutsideVolume):
					seen["refused"]++
				default:
					t.Fatalf("got %q, %v", got, err)
				}
			}
			close(stop)
			<-done
		})
	}
}
