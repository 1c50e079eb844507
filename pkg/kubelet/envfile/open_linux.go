package envfile

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// open opens the regular file at path beneath the volume's directory for
// reading, if the reader may read it.
func open(ctx context.Context, volume, path string, r *reader, resolve resolver) (int, error) {
	if ctx.Err() != nil {
		return -1, ErrInterrupted
	}
	if path == "" || path[0] == '/' || strings.IndexByte(path, 0) >= 0 || hasStepBack(path) {
		return -1, ErrOutsideVolume
	}
	root, err := openPath(unix.AT_FDCWD, volume, unix.O_DIRECTORY)
	if err != nil {
		return -1, reasonOf(err)
	}
	defer unix.Close(root)

	found, err := resolve(ctx, r, root, path)
	if err != nil {
		return -1, reasonOf(err)
	}
	defer unix.Close(found.fd)

	if !found.is(unix.S_IFREG) {
		return -1, ErrNotRegular
	}
	if err := r.check(found, toRead); err != nil {
		return -1, reasonOf(err)
	}
	return reopen(ctx, found.fd)
}

// openPath returns an O_PATH descriptor of the one file name, itself if it is a
// symbolic link.
func openPath(dir int, name string, flags int) (fd int, err error) {
	err = retryEINTR(func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// reopen opens for reading the very file that an O_PATH descriptor stands for,
// whatever its name leads to by now.
func reopen(ctx context.Context, file int) (fd int, err error) {
	name := "/proc/self/fd/" + strconv.Itoa(file)
	err = retry(ctx, func() (err error) {
		fd, err = openToRead(name)
		if errors.Is(err, unix.ENOENT) {
			// Not the file, which is held open, but /proc is missing.
			return ErrReadFailed
		}
		return err
	})
	return fd, err
}

// openToRead opens a file of /proc, or one behind it. O_NONBLOCK is for a file with
// a lease on it: without it a workload could hold up the open for
// /proc/sys/fs/lease-break-time, 45 s.
func openToRead(name string) (fd int, err error) {
	err = retryEINTR(func() (err error) {
		fd, err = unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// reasonOf turns an errno into an error that can be shown to the pod's owner.
func reasonOf(err error) error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return ErrReadFailed
	}
	switch errno {
	case unix.ENOENT, unix.ENOTDIR:
		return ErrNotFound
	case unix.EXDEV:
		return ErrOutsideVolume
	case unix.ELOOP:
		return ErrLimitExceeded.atLine(0, "the path leads through too many symbolic links")
	case unix.ENAMETOOLONG:
		return ErrLimitExceeded.atLine(0, "the path, or that of a symbolic link, is too long")
	case unix.EACCES, unix.EPERM:
		return ErrPermissionDenied
	case unix.EAGAIN:
		return errLeased
	}
	return ErrReadFailed.atLine(0, ErrReadFailed.rule+": "+errno.Error())
}
