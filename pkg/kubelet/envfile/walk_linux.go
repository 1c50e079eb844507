package envfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxLinks is the kernel's own limit.
	maxLinks = 40
	// maxSteps bounds the work that links full of ".." can ask for.
	maxSteps = 16 << 10
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
type walker struct {
	reader *reader

	root node
	// mount is the ID of root's mount, once the kernel turned out to be too old
	// to stay in it by itself.
	mount string
	at    node
	// searchable says that the reader may search at.
	searchable bool
	// passed are the directories from root to at; a way back is taken in them.
	passed []string
	todo   []string
	links  int
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
	w.todo = strings.Split(path, "/")
	for steps := 0; err == nil && len(w.todo) > 0; steps++ {
		switch {
		case ctx.Err() != nil:
			err = ErrInterrupted
		case steps == maxSteps:
			err = unix.ELOOP
		default:
			err = w.step()
		}
	}
	if err == nil && w.at.fd == root {
		// The caller closes both.
		w.at.fd, err = openPath(root, ".", unix.O_DIRECTORY)
	}
	if err != nil {
		w.restart()
		return node{}, err
	}
	return w.at, nil
}

func (w *walker) step() error {
	element := w.todo[0]
	w.todo = w.todo[1:]
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
		if len(w.passed) == 0 {
			return unix.EXDEV
		}
		w.todo = append(w.passed[:len(w.passed)-1], w.todo...)
		w.restart()
		return nil
	}
	return w.enter(element)
}

// enter goes to the file of that name, or to where the symbolic link of that name points.
func (w *walker) enter(name string) error {
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
	if w.links == maxLinks {
		return unix.ELOOP
	}
	w.links++
	if w.isTrailing() && !w.reader.mayFollow(next, w.at) {
		return ErrPermissionDenied.atLine(0, ruleMayNotFollow)
	}
	target, err := readLink(fd)
	if err != nil {
		return err
	}
	if target[0] == '/' {
		return unix.EXDEV
	}
	w.todo = append(strings.Split(target, "/"), w.todo...)
	return nil
}

// isTrailing reports whether the element just taken is the last of the whole path.
func (w *walker) isTrailing() bool {
	for _, element := range w.todo {
		if element != "" {
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

func (w *walker) restart() {
	w.moveTo(w.root)
	w.passed = nil
}

func (w *walker) moveTo(n node) {
	if w.at.fd != w.root.fd {
		unix.Close(w.at.fd)
	}
	w.at = n
	w.searchable = false
}

// readLink returns the target of the symbolic link that fd stands for.
func readLink(fd int) (string, error) {
	target := make([]byte, maxTarget)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", unix.ENOENT
	}
	return string(target[:n]), nil
}

// mountOf returns the ID of the mount that the file is reached through. The
// device number would not do: two mounts can share it.
func mountOf(fd int) (string, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return "", ErrReadFailed
	}
	for _, line := range bytes.Split(info, []byte{'\n'}) {
		if id, ok := bytes.CutPrefix(line, []byte("mnt_id:")); ok {
			return string(bytes.TrimSpace(id)), nil
		}
	}
	return "", ErrReadFailed
}
