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
}

// readStable reads all of a file until it has surely seen one state of it: two
// readings are the same, and no write began from before the first to after the
// second. Neither alone is enough. A write that had begun before does not show
// in the file's times any more, but makes the readings differ; and two equal
// readings can be of a file that was changed and changed back in between.
func (b *buffer) readStable(file source) ([]byte, error) {
	for attempt := 0; attempt < attempts; attempt++ {
		if attempt > 0 {
			time.Sleep(pause)
		}
		data, stable, err := b.readTwice(file)
		if err != nil {
			return nil, reasonOf(err)
		}
		if stable {
			return data, nil
		}
	}
	return nil, ErrUnstable
}

func (b *buffer) readTwice(file source) (data []byte, stable bool, err error) {
	before, err := file.state()
	if err != nil || before.fresh(time.Now()) {
		return nil, false, err
	}
	first, err := b.readAll(file, b.first[:])
	if err != nil {
		return nil, false, err
	}
	second, err := b.readAll(file, b.second[:])
	if err != nil {
		return nil, false, err
	}
	after, err := file.state()
	if err != nil {
		return nil, false, err
	}
	return first, before == after && bytes.Equal(first, second), nil
}

// readAll reads the file from its start to its end.
func (b *buffer) readAll(file source, into []byte) ([]byte, error) {
	n := 0
	for n < len(into) {
		got, err := file.readAt(into[n:], n)
		if err != nil {
			return nil, err
		}
		if got == 0 {
			return into[:n], nil
		}
		n += got
		if n > b.used {
			b.used = n
		}
	}
	return nil, ErrLimitExceeded.atLine(0, ruleFileBytes)
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
