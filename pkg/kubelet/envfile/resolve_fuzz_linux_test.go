package envfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzResolve builds trees of directories, files and symbolic links, and resolves
// paths in them three ways, which must agree: by the kernel, by the walk, and in
// a model in memory. Beside the volume are files of the same names, to be found
// by what leaves it.
func FuzzResolve(f *testing.F) {
	f.Add([]byte{dirOp(0, 'a'), dirOp(1, 'b'), fileOp(2, 'c')}, []byte("a/b/c a/b a/b/c/ a//./b/../b/c"))
	f.Add(append([]byte{dirOp(0, 'a'), fileOp(1, 'b')}, linkOp(0, 'c', "a/b")...), []byte("c c/ c/a b"))
	f.Add(append([]byte{dirOp(0, 'a')}, linkOp(1, 'b', "../..")...), []byte("a/b a/b/c a/b/volume"))
	f.Add(linkOp(0, 'a', "a"), []byte("a a/b"))
	f.Add(linkOp(0, 'a', "/a"), []byte("a a/b ./a"))
	f.Add(append(linkOp(0, 'a', "b"), linkOp(0, 'b', ".")...), []byte("a/b/a/b/a b/./a/.."))
	f.Add(append(append(linkOp(0, 'a', "b/b"), linkOp(0, 'b', "c/c")...), linkOp(0, 'c', ".")...), []byte("a/a/a/a/a/a/a/a/a/a a/a/a/a/.."))

	v := newFuzzVolume(f)
	f.Fuzz(func(t *testing.T, tree, paths []byte) {
		nodes, order := fuzzTree(tree)
		v.become(t, nodes, order)
		for i, path := range fuzzPaths(paths) {
			want := v.nodes[""].resolve(path)
			v.compare(t, "openat2", wholePath, path, want)
			v.compare(t, "walk", walk, path, want)
			// It is slow, and the steps are the same.
			if i == 0 {
				v.compare(t, "walk without openat2", walkWithoutOpenat2, path, want)
			}
		}
	})
}

// fuzzNode is a file of the model.
type fuzzNode struct {
	mode     uint32
	target   string
	parent   *fuzzNode
	children map[string]*fuzzNode
	inode    uint64
}

// fuzzResult is the file that a path leads to, or why it leads to none.
type fuzzResult struct {
	file  *fuzzNode
	err   Reason
	links int
}

// resolve follows path_resolution(7) beneath n.
func (n *fuzzNode) resolve(path string) fuzzResult {
	at, links := n, 0
	failed := func(err Reason) fuzzResult { return fuzzResult{err: err, links: links} }
	todo := strings.Split(path, "/")
	for len(todo) > 0 {
		element := todo[0]
		todo = todo[1:]
		if at.mode != unix.S_IFDIR {
			return failed(ReasonNotFound)
		}
		switch element {
		case "", ".":
			continue
		case "..":
			if at == n {
				return failed(ReasonOutsideVolume)
			}
			at = at.parent
			continue
		}
		next := at.children[element]
		switch {
		case next == nil:
			return failed(ReasonNotFound)
		case next.mode != unix.S_IFLNK:
			at = next
			continue
		}
		if links++; links > 40 {
			return failed(ReasonLimitExceeded)
		}
		if strings.HasPrefix(next.target, "/") {
			return failed(ReasonOutsideVolume)
		}
		todo = append(strings.Split(next.target, "/"), todo...)
	}
	return fuzzResult{file: at, links: links}
}

// The trees have three names, so that many paths lead somewhere. One byte makes
// a file or directory; a link has a zero-terminated target too.
const (
	fuzzNames    = "abc"
	maxFuzzNodes = 12
	maxFuzzPath  = 24
	maxFuzzPaths = 6
)

func dirOp(parent int, name byte) byte {
	return byte(parent<<4 | strings.IndexByte(fuzzNames, name)<<2)
}

func fileOp(parent int, name byte) byte { return dirOp(parent, name) | 2 }

func linkOp(parent int, name byte, target string) []byte {
	return append([]byte{dirOp(parent, name) | 3}, target+"\x00"...)
}

// fuzzTree returns the nodes by their paths, and the paths with parents first.
func fuzzTree(ops []byte) (nodes map[string]*fuzzNode, order []string) {
	nodes = map[string]*fuzzNode{"": {mode: unix.S_IFDIR, children: map[string]*fuzzNode{}}}
	dirs := []string{""}
	for len(ops) > 0 && len(nodes) < maxFuzzNodes {
		op := ops[0]
		ops = ops[1:]
		n := &fuzzNode{mode: unix.S_IFDIR}
		switch op & 3 {
		case 2:
			n.mode = unix.S_IFREG
		case 3:
			n.mode = unix.S_IFLNK
			end := 0
			for end < len(ops) && ops[end] != 0 {
				end++
			}
			n.target = fuzzPath(ops[:end])
			ops = ops[min(end+1, len(ops)):]
		default:
			n.children = map[string]*fuzzNode{}
		}
		parent := dirs[int(op>>4)%len(dirs)]
		name := string(fuzzNames[int(op>>2&3)%len(fuzzNames)])
		n.parent = nodes[parent]
		if n.parent.children[name] != nil || n.mode == unix.S_IFLNK && n.target == "" {
			continue
		}
		n.parent.children[name] = n
		path := filepath.Join(parent, name)
		nodes[path] = n
		order = append(order, path)
		if n.mode == unix.S_IFDIR {
			dirs = append(dirs, path)
		}
	}
	return nodes, order
}

// fuzzPath turns any bytes into a path of the trees' names.
func fuzzPath(choices []byte) string {
	path := make([]byte, 0, maxFuzzPath)
	for _, c := range choices {
		if len(path) == maxFuzzPath {
			break
		}
		if strings.IndexByte(fuzzNames+"./", c) < 0 {
			c = (fuzzNames + "../")[int(c)%6]
		}
		path = append(path, c)
	}
	return string(path)
}

// fuzzPaths returns the paths that open would let through, and others with
// steps back.
func fuzzPaths(choices []byte) (paths []string) {
	for _, choice := range strings.SplitN(string(choices), " ", maxFuzzPaths+1) {
		if path := fuzzPath([]byte(choice)); path != "" && path[0] != '/' && len(paths) < maxFuzzPaths {
			paths = append(paths, path)
		}
	}
	return paths
}

// fuzzVolume is a volume that becomes one tree after the other, with as few system
// calls as possible.
type fuzzVolume struct {
	root  int
	nodes map[string]*fuzzNode
	order []string
}

func newFuzzVolume(f *testing.F) *fuzzVolume {
	f.Helper()
	// In memory, where there is such a file system.
	dir, err := os.MkdirTemp("/dev/shm", "envfile-fuzz-")
	if err == nil {
		f.Cleanup(func() { os.RemoveAll(dir) })
	} else {
		dir = f.TempDir()
	}
	if err := os.Mkdir(filepath.Join(dir, "volume"), 0o755); err != nil {
		f.Fatal(err)
	}
	for _, name := range fuzzNames {
		if err := os.WriteFile(filepath.Join(dir, string(name)), []byte(outside), 0o644); err != nil {
			f.Fatal(err)
		}
	}
	root, err := openPath(unix.AT_FDCWD, filepath.Join(dir, "volume"), unix.O_DIRECTORY)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { unix.Close(root) })
	return &fuzzVolume{root: root}
}

// become removes what is not in the next tree and adds what is not in this one.
func (v *fuzzVolume) become(t *testing.T, nodes map[string]*fuzzNode, order []string) {
	t.Helper()
	for i := len(v.order) - 1; i >= 0; i-- {
		path := v.order[i]
		old, next := v.nodes[path], nodes[path]
		if next != nil && next.mode == old.mode && next.target == old.target {
			next.inode = old.inode
			continue
		}
		flags := 0
		if old.mode == unix.S_IFDIR {
			flags = unix.AT_REMOVEDIR
		}
		v.check(t, unix.Unlinkat(v.root, path, flags))
	}
	for _, path := range order {
		if n := nodes[path]; n.inode == 0 {
			n.inode = v.make(t, path, n)
		}
	}
	nodes[""].inode = v.inodeOf(t, v.root, ".")
	v.nodes, v.order = nodes, order
}

func (v *fuzzVolume) make(t *testing.T, path string, n *fuzzNode) (inode uint64) {
	t.Helper()
	switch n.mode {
	case unix.S_IFDIR:
		v.check(t, unix.Mkdirat(v.root, path, 0o755))
	case unix.S_IFLNK:
		v.check(t, unix.Symlinkat(n.target, v.root, path))
	default:
		v.check(t, unix.Mknodat(v.root, path, unix.S_IFREG|0o644, 0))
	}
	return v.inodeOf(t, v.root, path)
}

func (v *fuzzVolume) inodeOf(t *testing.T, dir int, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	v.check(t, unix.Fstatat(dir, path, &st, unix.AT_SYMLINK_NOFOLLOW))
	return st.Ino
}

func (v *fuzzVolume) check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (v *fuzzVolume) compare(t *testing.T, name string, resolve resolver, path string, want fuzzResult) {
	t.Helper()
	got, err := resolve(context.Background(), nil, v.root, path)
	if err != nil {
		// The kernel has no such bound. Only through many links do paths this short
		// have that many steps.
		if reasonOf(err).Error() == errSteps.Error() && want.links > maxLinks/4 {
			return
		}
		var known *Error
		if !errors.As(reasonOf(err), &known) || known.Reason != want.err && !countedTwice(name, known.Reason, want) {
			t.Errorf("%s: %q: want error %q, got %v", name, path, want.err, err)
		}
		return
	}
	defer unix.Close(got.fd)
	var st unix.Stat_t
	v.check(t, unix.Fstat(got.fd, &st))
	if want.file == nil || st.Ino != want.file.inode || got.mode&unix.S_IFMT != want.file.mode {
		t.Errorf("%s: %q: want error %q, got a file of mode %o that is not the one in the model", name, path, want.err, got.mode)
	}
}

// countedTwice reports whether the kernel may have seen more than 40 links: where
// its first walk, without locks, cannot go on, at a step back from the root for
// example, it starts again, and the links of both walks count.
func countedTwice(name string, got Reason, want fuzzResult) bool {
	return name == "openat2" && got == ReasonLimitExceeded && want.links > maxLinks/2
}
