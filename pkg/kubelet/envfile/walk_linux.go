package envfile

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxLinks is the kernel's own limit.
	maxLinks = 40
	// maxSteps bounds what a reading can cost. A step is to go to an element and
	// look at it, about 2 µs; a path 500 directories deep is within the bound
	// whoever reads it, and on whatever kernel. See BenchmarkLongestWalk.
	maxSteps = 3072
	// mountSteps is what it takes to ask for the mount of a file, in steps.
	mountSteps = 3
	// maxTarget is PATH_MAX, which no symbolic link's target exceeds.
	maxTarget = 4096
)

// resolver finds the file that path names beneath the directory root, following
// symbolic links, and returns it as an O_PATH descriptor: nothing is opened
// yet, so a FIFO, socket or device takes no notice.
type resolver func(ctx context.Context, r *reader, root int, path string) (node, error)

// walk resolves a path as openat2 with RESOLVE_BENEATH does, one element at a
// time. At each step it checks what the kernel would check for the reader: it
// must be allowed to search each directory in which an element is looked up.
func walk(ctx context.Context, r *reader, root int, path string) (node, error) {
	w := walker{reader: r}
	return w.walk(ctx, root, path)
}

// walker stands at a file beneath root. No element is ever opened as anything
// but itself, so there is nothing that a workload could swap in between:
// symbolic links are read and their targets walked in turn, and ".." starts
// again at root with one element less.
//
// Its work is in proportion to its steps, whatever links a volume has: no path
// or target is copied to go on in it, or gone through before its turn.
type walker struct {
	reader *reader

	root node
	// mount is the ID of root's mount, once the kernel turned out to be too old
	// to stay in it by itself.
	mount string
	at    node
	// searchable says that the reader may search at.
	searchable bool
	// passed are the directories from root to at, as they are named.
	passed []string
	// again are the directories to pass once more after a step back, before
	// anything of todo. They stand in passed's memory, just behind it.
	again []string
	// todo has what is left of the path and of the targets of links in it, the
	// next at the end. An empty one stands for a slash at the end of a path.
	todo  []string
	links int
	steps int

	target [maxTarget]byte
}

func (w *walker) walk(ctx context.Context, root int, path string) (node, error) {
	if len(path) >= maxTarget {
		return node{}, unix.ENAMETOOLONG
	}
	var err error
	if w.root, err = inspect(root); err != nil {
		return node{}, err
	}
	w.at = w.root
	w.todo = append(w.todo, path)
	for err == nil && len(w.again)+len(w.todo) > 0 {
		switch {
		case ctx.Err() != nil:
			err = ErrInterrupted
		case w.taken() >= maxSteps:
			err = errSteps
		default:
			w.steps++
			err = w.step()
		}
	}
	if err == nil && w.at.fd == root {
		// The caller closes both.
		w.at.fd, err = openPath(root, ".", unix.O_DIRECTORY)
	}
	if err != nil {
		w.moveTo(w.root)
		return node{}, err
	}
	return w.at, nil
}

func (w *walker) taken() int {
	if w.reader == nil {
		return w.steps
	}
	return w.steps + w.reader.steps
}

// next takes the next element. It is empty for a slash at the end of a path.
func (w *walker) next() string {
	if len(w.again) > 0 {
		element := w.again[0]
		w.again = w.again[1:]
		return element
	}
	last := len(w.todo) - 1
	element, rest, more := strings.Cut(w.todo[last], "/")
	if more {
		w.todo[last] = strings.TrimLeft(rest, "/")
	} else {
		w.todo = w.todo[:last]
	}
	return element
}

func (w *walker) step() error {
	again := len(w.again) > 0
	element := w.next()
	if !w.at.is(unix.S_IFDIR) {
		return unix.ENOTDIR
	}
	if element == "" {
		return nil
	}
	// The kernel asks for every element, a dot too.
	if !w.searchable {
		if err := w.reader.check(w.at, toSearch); err != nil {
			return err
		}
		w.searchable = true
	}
	switch element {
	case ".":
		return nil
	case "..":
		last := len(w.passed) - 1
		if last < 0 {
			return unix.EXDEV
		}
		w.again, w.passed = w.passed[:last], w.passed[:0]
		w.moveTo(w.root)
		return nil
	}
	return w.enter(element, again)
}

// enter goes to the file of that name, or to where the symbolic link of that name
// points. What is entered again was a directory.
func (w *walker) enter(name string, again bool) error {
	fd, err := w.open(name)
	if err != nil {
		return err
	}
	next, err := inspect(fd)
	if err == nil && !next.is(unix.S_IFLNK) {
		w.moveTo(next)
		w.passed = append(w.passed, name)
		return nil
	}
	defer unix.Close(fd)
	if err != nil {
		return err
	}
	if again {
		return ErrUnstable
	}
	if w.links == maxLinks {
		return unix.ELOOP
	}
	w.links++
	if w.isTrailing() && !w.reader.mayFollow(next, w.at) {
		return ErrPermissionDenied.atLine(0, ruleMayNotFollow)
	}
	n, err := unix.Readlinkat(fd, "", w.target[:])
	switch {
	case err != nil:
		return err
	case n == 0:
		return unix.ENOENT
	case w.target[0] == '/':
		return unix.EXDEV
	}
	w.todo = append(w.todo, string(w.target[:n]))
	return nil
}

// isTrailing reports whether the element just taken is the last of the whole path.
func (w *walker) isTrailing() bool {
	for _, rest := range w.todo {
		if rest != "" {
			return false
		}
	}
	return true
}

// open opens a file of the directory that the walk stands at, unless another
// file system is mounted there: that is not the volume's content, and it may
// answer when it likes.
func (w *walker) open(name string) (int, error) {
	if w.mount == "" {
		fd, err := openBeneath(w.at.fd, name, unix.O_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EXDEV):
			return -1, errMount
		case !isUnknown(err):
			return fd, err
		}
		if w.mount, err = mountOf(w.root.fd); err != nil {
			return -1, err
		}
	}
	fd, err := openPath(w.at.fd, name, 0)
	if err != nil {
		return -1, err
	}
	w.steps += mountSteps
	// Before anything is asked of a file system that is not the volume's.
	if mount, err := mountOf(fd); err != nil || mount != w.mount {
		unix.Close(fd)
		if err == nil {
			err = errMount
		}
		return -1, err
	}
	return fd, nil
}

var errSteps = ErrLimitExceeded.atLine(0, "the path has too many steps: use fewer directories, and fewer symbolic links that lead back")

var errMount = ErrOutsideVolume.atLine(0, "the path must not lead through a mount inside the volume: write the file to the volume itself")

// isUnknown reports whether openat2 does not exist: the kernel is older than 5.6
// (ENOSYS), or a seccomp filter does not know it (EPERM, which openat2 with
// O_PATH never returns by itself).
func isUnknown(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

// openBeneath fails with EXDEV where the path leaves the directory: by an
// absolute link, by "..", or into another mount.
func openBeneath(dir int, path string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS |
			unix.RESOLVE_NO_XDEV,
	}
	err = retryEINTR(func() (err error) {
		fd, err = unix.Openat2(dir, path, &how)
		return err
	})
	return fd, err
}

func (w *walker) moveTo(n node) {
	if w.at.fd != w.root.fd {
		unix.Close(w.at.fd)
	}
	w.at = n
	w.searchable = false
}

// mountOf returns the ID of the mount that the file is reached through. The
// device number would not do: two mounts can share it.
func mountOf(fd int) (string, error) {
	info, err := openToRead("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", ErrReadFailed
	}
	defer unix.Close(info)
	// That of an O_PATH descriptor has four short lines.
	var text [256]byte
	n, err := descriptor(info).readAt(text[:], 0)
	if err != nil {
		return "", ErrReadFailed
	}
	_, id, found := bytes.Cut(text[:n], []byte("mnt_id:"))
	id, _, ended := bytes.Cut(id, []byte{'\n'})
	if !found || !ended {
		return "", ErrReadFailed
	}
	return string(bytes.TrimSpace(id)), nil
}
