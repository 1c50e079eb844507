package envfile

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The decision is the kernel's own: both are asked about every kind of file, and
// for every kind of process.
func TestAccessIsWhatTheKernelDecides(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("taking on other credentials needs root")
	}
	setups := map[string]func(v volume, r *rand.Rand) (paths []string){
		"every mode of a file":         everyFileMode,
		"every mode of a directory":    everyDirectoryMode,
		"files with an ACL":            filesWithACL,
		"directories with an ACL":      directoriesWithACL,
		"trees with links":             treesWithLinks,
		"links in sticky directories":  linksInStickyDirectories,
		"a volume that is not for all": privateRoot,
	}
	for name, setup := range setups {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.check(os.Chmod(v.root, 0o777))
			paths := setup(v, rand.New(rand.NewSource(1)))
			seen := map[bool]int{}
			for _, c := range someCredentials() {
				var kernel []bool
				for _, known := range whoItMayBe(c) {
					allowed := v.kernelAllows(known, paths)
					if kernel == nil {
						kernel = allowed
					}
					for i := range kernel {
						kernel[i] = kernel[i] && allowed[i]
					}
				}
				for i, path := range paths {
					seen[kernel[i]]++
					if got := v.packageAllows(c, path); got != kernel[i] {
						t.Fatalf("%s for %s: the kernel says %v, got %v", v.describe(path), describe(c), kernel[i], got)
					}
				}
			}
			if seen[true] < 20 || seen[false] < 20 {
				t.Errorf("there is too little to decide: %v", seen)
			}
		})
	}
}

var (
	someUIDs = []int{0, 1000, 2000, 5000}
	someGIDs = []int{0, 1000, 3000, 4000, 5000}
)

// Nothing belongs to these in any test.
const (
	strangeUID = 77777
	strangeGID = 88888
)

func someCredentials() []*Credentials {
	return []*Credentials{
		{UID: id(0), GID: id(0)},
		{UID: id(1000), GID: id(1000)},
		{UID: id(1000), GID: id(strangeGID)},
		{UID: id(2000), GID: id(3000)},
		{UID: id(2000), GID: id(0), Groups: []int64{4000, 3000}},
		{UID: id(strangeUID), GID: id(strangeGID)},
		{UID: id(strangeUID), GID: id(strangeGID), Groups: []int64{5000, 0, 1000}},
		{UID: id(2000)},
		{UID: id(2000), Groups: []int64{3000}},
		{UID: id(strangeUID), Groups: []int64{1000, 4000}},
		{},
		{Groups: []int64{1000}},
	}
}

// whoItMayBe returns all that may be behind unknown IDs.
func whoItMayBe(c *Credentials) []*Credentials {
	if c.UID == nil {
		return []*Credentials{{UID: id(strangeUID), GID: id(strangeGID)}}
	}
	if c.GID != nil {
		return []*Credentials{c}
	}
	all := []*Credentials{{UID: c.UID, GID: id(strangeGID), Groups: c.Groups}}
	for _, gid := range someGIDs {
		all = append(all, &Credentials{UID: c.UID, GID: id(int64(gid)), Groups: c.Groups})
	}
	return all
}

// packageAllows reports whether this package opens path with the credentials.
func (v volume) packageAllows(c *Credentials, path string) bool {
	v.Helper()
	r := newReader(c)
	fd, err := open(context.Background(), v.root, path, r, walk)
	if err == nil {
		unix.Close(fd)
		return true
	}
	if !errors.Is(err, ErrPermissionDenied) {
		v.Fatalf("%s: %v", v.describe(path), err)
	}
	return false
}

// kernelAllows opens each path as a process with these credentials does: on a thread
// of its own, since on Linux the IDs that count for files belong to a thread. It
// ends with them.
func (v volume) kernelAllows(c *Credentials, paths []string) []bool {
	v.Helper()
	root, err := unix.Open(v.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	v.check(err)
	defer unix.Close(root)
	allowed := make([]bool, len(paths))
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			if err := takeOn(c); err != nil {
				return err
			}
			for i, path := range paths {
				fd, err := unix.Openat(root, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				switch {
				case err == nil:
					unix.Close(fd)
					allowed[i] = true
				case !errors.Is(err, unix.EACCES):
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			return nil
		}()
	}()
	v.check(<-done)
	return allowed
}

// takeOn gives the thread the credentials' file system IDs. The kernel takes the
// capabilities over files from a thread whose UID for files is not 0.
func takeOn(c *Credentials) error {
	var groups []int
	for _, gid := range c.Groups {
		groups = append(groups, int(gid))
	}
	if err := unix.Setgroups(groups); err != nil {
		return err
	}
	if _, err := unix.SetfsgidRetGid(int(*c.GID)); err != nil {
		return err
	}
	if _, err := unix.SetfsuidRetUid(int(*c.UID)); err != nil {
		return err
	}
	if uid, err := unix.SetfsuidRetUid(-1); err != nil || uid != int(*c.UID) {
		return fmt.Errorf("the thread has UID %d for files, not %d: %v", uid, *c.UID, err)
	}
	if gid, err := unix.SetfsgidRetGid(-1); err != nil || gid != int(*c.GID) {
		return fmt.Errorf("the thread has GID %d for files, not %d: %v", gid, *c.GID, err)
	}
	return nil
}

func everyFileMode(v volume, _ *rand.Rand) (paths []string) {
	for mode := 0; mode < 0o1000; mode++ {
		for _, owner := range [][2]int{{1000, 1000}, {2000, 1000}, {0, 3000}, {5000, 5000}} {
			path := fmt.Sprintf("%o.%d.%d", mode, owner[0], owner[1])
			v.file(path, inside)
			v.give(path, uint32(mode), owner[0], owner[1])
			paths = append(paths, path)
		}
	}
	return paths
}

func everyDirectoryMode(v volume, _ *rand.Rand) (paths []string) {
	for mode := 0; mode < 0o1000; mode++ {
		for _, owner := range [][2]int{{1000, 1000}, {2000, 1000}, {0, 3000}} {
			path := fmt.Sprintf("%o.%d.%d", mode, owner[0], owner[1])
			v.dir(path)
			v.file(path+"/f", inside)
			v.give(path, uint32(mode), owner[0], owner[1])
			paths = append(paths, path+"/f")
		}
	}
	return paths
}

func filesWithACL(v volume, r *rand.Rand) (paths []string) {
	for i := 0; i < 1500; i++ {
		path := fmt.Sprint(i)
		v.file(path, inside)
		v.giveRandom(path, r)
		v.setACL(path, randomACL(r))
		paths = append(paths, path)
	}
	return paths
}

func directoriesWithACL(v volume, r *rand.Rand) (paths []string) {
	for i := 0; i < 700; i++ {
		path := fmt.Sprint(i)
		v.dir(path)
		v.file(path+"/f", inside)
		v.giveRandom(path, r)
		v.setACL(path, randomACL(r))
		paths = append(paths, path+"/f", path+"/./f")
	}
	return paths
}

func treesWithLinks(v volume, r *rand.Rand) (paths []string) {
	for i := 0; i < 100; i++ {
		top := fmt.Sprint(i)
		v.dir(top + "/a/b")
		v.dir(top + "/c")
		links := map[string]string{"up": "a/../c/f", "down": "./a/b/f", "a/b/over": "../../c//f", "c/loop": "../a/b/over", "dir": "a/b", "c/self": "../c/./f"}
		for name, target := range links {
			v.link(top+"/"+name, target)
		}
		for _, name := range []string{"a/b/f", "c/f"} {
			v.file(top+"/"+name, inside)
		}
		for _, name := range []string{"a/b/f", "c/f", "a/b", "a", "c", ""} {
			path := top + "/" + name
			v.giveRandom(path, r)
			if r.Intn(4) == 0 {
				v.setACL(path, randomACL(r))
			}
			// Mostly open, or nothing would be reached.
			if r.Intn(3) > 0 {
				v.check(os.Chmod(v.path(path), 0o755))
			}
		}
		for _, name := range []string{"up", "down", "a/b/over", "c/loop", "dir/f", "dir/over", "c/self", "a/./b/f"} {
			paths = append(paths, top+"/"+name)
		}
	}
	return paths
}

func linksInStickyDirectories(v volume, r *rand.Rand) (paths []string) {
	for _, mode := range []uint32{0o1777, 0o777, 0o1775, 0o1773} {
		for _, owner := range someUIDs {
			dir := fmt.Sprintf("%o.%d", mode, owner)
			v.dir(dir)
			v.give(dir, mode, owner, 0)
			v.file(dir+"/f", inside)
			v.dir(dir + "/real")
			v.file(dir+"/real/f", inside)
			for _, linkOwner := range someUIDs {
				for name, target := range map[string]string{"file": "f", "dir": "real", "twice": fmt.Sprint("file.", linkOwner)} {
					link := fmt.Sprintf("%s/%s.%d", dir, name, linkOwner)
					v.link(link, target)
					v.check(os.Lchown(v.path(link), linkOwner, 0))
					if name == "dir" {
						link += "/f"
					}
					paths = append(paths, link)
				}
			}
		}
	}
	// To some users nothing else is refused, and to nobody where fs.protected_symlinks is 0.
	for _, private := range []string{"private", "secret"} {
		v.file(private, inside)
		v.give(private, 0o400, 5000, 5000)
		paths = append(paths, private)
	}
	return paths
}

func privateRoot(v volume, r *rand.Rand) (paths []string) {
	for i := 0; i < 50; i++ {
		path := fmt.Sprint(i)
		v.file(path, inside)
		paths = append(paths, path)
	}
	v.give(".", 0o2750, 2000, 1000)
	return paths
}

func (v volume) give(path string, mode uint32, uid, gid int) {
	v.Helper()
	v.check(os.Lchown(v.path(path), uid, gid))
	v.check(unix.Chmod(v.path(path), mode))
}

func (v volume) giveRandom(path string, r *rand.Rand) {
	v.Helper()
	v.give(path, uint32(r.Intn(0o1000)), pick(r, someUIDs), pick(r, someGIDs))
}

func pick(r *rand.Rand, from []int) int { return from[r.Intn(len(from))] }

func randomACL(r *rand.Rand) []byte {
	bits := func() uint16 { return uint16(r.Intn(8)) }
	entries := []aclTestEntry{{0x01, bits(), aclNoID}}
	for _, uid := range someUIDs {
		if r.Intn(3) == 0 {
			entries = append(entries, aclTestEntry{0x02, bits(), uint32(uid)})
		}
	}
	entries = append(entries, aclTestEntry{0x04, bits(), aclNoID})
	for _, gid := range someGIDs {
		if r.Intn(2) == 0 {
			entries = append(entries, aclTestEntry{0x08, bits(), uint32(gid)})
		}
	}
	mask := bits()
	if r.Intn(2) == 0 {
		mask = 7
	}
	return aclOf(append(entries, aclTestEntry{0x10, mask, aclNoID}, aclTestEntry{0x20, bits(), aclNoID}))
}

func (v volume) setACL(path string, list []byte) {
	v.Helper()
	err := unix.Setxattr(v.path(path), "system.posix_acl_access", list, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		v.Skip("the file system for temporary files has no ACLs")
	}
	v.check(err)
}

func (v volume) describe(path string) string {
	v.Helper()
	fd, err := unix.Open(v.path(path), unix.O_PATH, 0)
	v.check(err)
	defer unix.Close(fd)
	n, err := inspect(fd)
	v.check(err)
	list, err := newReader(stranger).accessACL(fd)
	v.check(err)
	return fmt.Sprintf("%q, mode %o, owner %d, group %d, ACL % x", path, n.mode, n.uid, n.gid, list)
}
