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
	"time"

	"golang.org/x/sys/unix"
)

const (
	// attempts bounds how often a file that changes is read again, and pause is
	// how long to wait before that. Together they stay far below what a start
	// of a container takes; the kubelet's back-off goes on from there.
	attempts = 6
	pause    = 10 * time.Millisecond
)

// source is a file that is being written while it is read.
type source interface {
	readAt(p []byte, offset int) (int, error)
	state() (state, error)
	// keepWriters reports whether the file has no writer, and gets none until
	// letWriters, which reports whether that held to the end.
	keepWriters() bool
	letWriters() bool
}

// readStable reads all of a file until it has surely seen one state of it.
//
// One reading is enough while nobody can write: with a read lease on the file,
// which the kernel grants only if no descriptor and no mapping of any process
// can write to it, and which makes an open for writing, or a truncation, wait
// until it is given back. That is a matter of microseconds, so the wait does
// not show; an open with O_NONBLOCK would fail with EWOULDBLOCK in that time.
// No age of the file's times could replace it: a write sets them as it begins
// and may then wait, for memory or for the disk, longer than any limit we set.
//
// Where there is no lease to be had, because someone has the file open for
// writing, the file system has none, or the kubelet lacks CAP_LEASE, it takes
// two readings that are the same, and no write that began from before the
// first to after the second. Neither alone is enough. A write that had begun
// before does not show in the file's times any more, but makes the readings
// differ; and two equal readings can be of a file that was changed and changed
// back in between.
func (b *buffer) readStable(file source) ([]byte, error) {
	for attempt := 0; attempt < attempts; attempt++ {
		if attempt > 0 {
			time.Sleep(pause)
		}
		data, stable, err := b.readOnce(file)
		if err == nil && !stable {
			data, stable, err = b.readTwice(file)
		}
		if err != nil {
			return nil, reasonOf(err)
		}
		if stable {
			return data, nil
		}
	}
	return nil, ErrUnstable
}

func (b *buffer) readOnce(file source) (data []byte, stable bool, err error) {
	if !file.keepWriters() {
		return nil, false, nil
	}
	data, err = b.readAll(file)
	// The kernel takes the lease back from who keeps it too long, for example
	// because the kubelet was stopped.
	if !file.letWriters() {
		return nil, false, nil
	}
	return data, true, err
}

func (b *buffer) readTwice(file source) (data []byte, stable bool, err error) {
	before, err := file.state()
	if err != nil || before.fresh(time.Now()) {
		return nil, false, err
	}
	data, err = b.readAll(file)
	if err != nil {
		return nil, false, err
	}
	same, err := b.readAgain(file, data)
	if err != nil || !same {
		return nil, false, err
	}
	after, err := file.state()
	return data, before == after, err
}

// readAll reads the file from its start to its end.
func (b *buffer) readAll(file source) ([]byte, error) {
	for n := 0; n < len(b.data); {
		got, err := file.readAt(b.data[n:], n)
		if err != nil {
			return nil, err
		}
		if got == 0 {
			return b.data[:n], nil
		}
		n += got
		b.used = max(b.used, n)
	}
	return nil, ErrLimitExceeded.atLine(0, ruleFileBytes)
}

// readAgain reports whether the file is data and nothing else.
func (b *buffer) readAgain(file source, data []byte) (same bool, err error) {
	for n := 0; ; {
		got, err := file.readAt(b.again[:], n)
		if err != nil {
			return false, err
		}
		if got == 0 {
			return n == len(data), nil
		}
		if !bytes.HasPrefix(data[n:], b.again[:got]) {
			return false, nil
		}
		n += got
	}
}

// state is what the kernel changes as a write begins.
type state struct {
	size         int64
	mtime, ctime unix.Timespec
}

// fresh reports whether the last change is so recent that another one might
// not show in the file's times: a file system takes them from a clock that
// ticks every 10 ms at the slowest, or counts in full seconds.
func (s state) fresh(now time.Time) bool {
	resolution := 20 * time.Millisecond
	if s.ctime.Nsec == 0 {
		resolution = 2 * time.Second
	}
	age := now.Sub(time.Unix(s.ctime.Unix()))
	// A time further in the future is from before the clock was set back. The
	// next change will show: it has an earlier time.
	return -resolution < age && age < resolution
}
