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

// beneath lets the kernel resolve the path, which nothing can race, or walks it
// where the kernel is older than 5.6 (ENOSYS) or a seccomp filter does not know
// openat2 (EPERM, which openat2 with O_PATH never gives by itself).
func beneath(root int, path string) (int, error) {
	fd, err := openat2(root, path)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return walk(root, path)
	}
	return fd, err
}

// openat2 fails with EXDEV where the path leaves the volume: by an absolute
// link, by "..", or into another mount. A mount in the volume is not the
// volume's content and may be a file system that answers when it likes.
func openat2(root int, path string) (fd int, err error) {
	how := unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS |
			unix.RESOLVE_NO_XDEV,
	}
	// EAGAIN: a rename somewhere on the node kept the kernel from being sure
	// that a ".." stayed beneath root.
	for attempt := 0; attempt < 64; attempt++ {
		err = retryEINTR(func() (err error) {
			fd, err = unix.Openat2(root, path, &how)
			return err
		})
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}
