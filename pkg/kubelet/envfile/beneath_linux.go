/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package envfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// resolver finds what path names beneath the directory root, following
// symbolic links, and returns it as an O_PATH descriptor: nothing is opened
// yet, so a FIFO, socket or device takes no notice.
type resolver func(root int, path string) (node, error)

// beneath lets the kernel resolve the path, which nothing can race, or walks it
// where the kernel is older than 5.6 (ENOSYS) or a seccomp filter does not know
// openat2 (EPERM, which openat2 with O_PATH never gives by itself). It walks
// too for a reader whose permissions count: the kernel would decide for the
// kubelet.
func beneath(r *reader) resolver {
	if r != nil {
		return walkAs(r)
	}
	return func(root int, path string) (node, error) {
		found, err := wholePath(root, path)
		if isUnknown(err) {
			return walkAs(nil)(root, path)
		}
		return found, err
	}
}

// isUnknown reports whether this is what openat2 returns where it does not exist.
func isUnknown(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)
}

func wholePath(root int, path string) (node, error) {
	fd, err := openat2(root, path, 0)
	if err != nil {
		return node{}, err
	}
	found, err := inspect(fd)
	if err != nil {
		unix.Close(fd)
	}
	return found, err
}

// openat2 fails with EXDEV where the path leaves the directory: by an absolute
// link, by "..", or into another mount. A mount in the volume is not the
// volume's content and may be a file system that answers when it likes.
func openat2(dir int, path string, flags uint64) (fd int, err error) {
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS |
			unix.RESOLVE_NO_XDEV,
	}
	// EAGAIN: a rename somewhere on the node kept the kernel from being sure
	// that a ".." stayed beneath dir.
	for attempt := 0; attempt < 64; attempt++ {
		err = retryEINTR(func() (err error) {
			fd, err = unix.Openat2(dir, path, &how)
			return err
		})
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}
