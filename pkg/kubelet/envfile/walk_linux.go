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
	"bytes"
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

// walk does what openat2 does, one element of the path at a time.
func walk(root int, path string) (int, error) {
	if len(path) >= maxTarget {
		return -1, unix.ENAMETOOLONG
	}
	mount, err := mountOf(root)
	if err != nil {
		return -1, err
	}
	w := walker{root: root, mount: mount, at: -1, todo: strings.Split(path, "/")}
	err = w.restart()
	for steps := 0; err == nil && len(w.todo) > 0; steps++ {
		if steps == maxSteps || w.links > maxLinks {
			err = unix.ELOOP
			break
		}
		err = w.step()
	}
	if err != nil {
		w.moveTo(-1)
		return -1, err
	}
	return w.at, nil
}

// walker stands at a file beneath root. No element is ever opened as anything
// but itself, so there is nothing that a workload could swap in between:
// symbolic links are read and their targets walked in turn, and ".." starts
// again at root with one element less.
type walker struct {
	root  int
	mount string
	at    int
	// passed are the directories from root to at; a way back is taken in them.
	passed []string
	todo   []string
	links  int
}

func (w *walker) step() error {
	element := w.todo[0]
	w.todo = w.todo[1:]
	switch element {
	case "", ".":
		// Stays where it is, which must be a directory.
		fd, err := openPath(w.at, ".", unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		w.moveTo(fd)
		return nil
	case "..":
		// Fails where the walk stands at a file.
		fd, err := openPath(w.at, ".", unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		w.moveTo(fd)
		if len(w.passed) == 0 {
			return unix.EXDEV
		}
		w.todo = append(w.passed[:len(w.passed)-1], w.todo...)
		return w.restart()
	}
	return w.enter(element)
}

// enter goes to the file of that name, or to where the symbolic link of that name points.
func (w *walker) enter(name string) error {
	fd, err := openPath(w.at, name, 0)
	if err != nil {
		return err
	}
	// Before anything is asked of a file system that is not the volume's.
	if mount, err := mountOf(fd); err != nil || mount != w.mount {
		unix.Close(fd)
		if err == nil {
			err = unix.EXDEV
		}
		return err
	}
	target, err := readLink(fd)
	if err != nil {
		unix.Close(fd)
		return err
	}
	if target == "" {
		w.moveTo(fd)
		w.passed = append(w.passed, name)
		return nil
	}
	unix.Close(fd)
	if target[0] == '/' {
		return unix.EXDEV
	}
	w.links++
	w.todo = append(strings.Split(target, "/"), w.todo...)
	return nil
}

func (w *walker) restart() error {
	fd, err := openPath(w.root, ".", unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	w.moveTo(fd)
	w.passed = nil
	return nil
}

func (w *walker) moveTo(fd int) {
	if w.at >= 0 {
		unix.Close(w.at)
	}
	w.at = fd
}

// readLink returns the target of the symbolic link that fd stands for, or
// nothing if fd is no symbolic link.
func readLink(fd int) (string, error) {
	var st unix.Stat_t
	if err := retryEINTR(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return "", err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", nil
	}
	target := make([]byte, maxTarget)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return "", err
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
