package envfile

import (
	"bytes"
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

var errWriter = ErrUnstable.atLine(0, "a process holds the file open or mapped for writing: close it after writing, or write a new file and rename it into place")

// source is a file that may change while it is read.
type source interface {
	readAt(p []byte, offset int) (int, error)
	state() (state, error)
	// lease keeps writers away until endLease. The error is EAGAIN if the file
	// has a writer, and another one if it can have no lease, or none that proves
	// anything.
	lease() error
	// endLease reports whether the lease lasted until now.
	endLease() bool
}

// readStable reads all of a file, in one state of it.
//
// On ext4, xfs, btrfs and tmpfs it reads under a read lease. The kernel grants one
// there only if no descriptor and no mapping of any process can write to the file.
// An open for writing and a truncation then wait until the lease ends, which takes
// microseconds; an open with O_NONBLOCK fails with EWOULDBLOCK in that time. A file
// that has a writer is refused: no comparison of readings or times shows one state
// of it, because a write can stall half way for any time, and a mapping changes
// bytes without changing times.
//
// On other file systems there is nothing better than such a comparison.
func (b *buffer) readStable(ctx context.Context, file source) (data []byte, err error) {
	err = retry(ctx, func() error {
		data, err = b.readOnce(file)
		return err
	})
	return data, err
}

func (b *buffer) readOnce(file source) ([]byte, error) {
	switch err := file.lease(); {
	case errors.Is(err, unix.EAGAIN):
		return nil, errWriter
	case err != nil:
		return b.readTwice(file)
	}
	data, err := b.readAll(file)
	// The kernel ends a lease that is kept too long, for example by a kubelet
	// that was stopped.
	if !file.endLease() {
		return nil, ErrUnstable
	}
	return data, err
}

// readTwice reads a file that can have no lease, because the file system has
// none that proves anything or the kubelet lacks CAP_LEASE. The best that is possible there is two
// equal readings, and no change of the times from before the first to after the
// second. A write that began earlier does not show in the times, but makes the
// readings differ. Two equal readings can be of a file that was changed and
// changed back in between, or of a mix that a mapping keeps for that long.
func (b *buffer) readTwice(file source) ([]byte, error) {
	before, err := file.state()
	if err != nil {
		return nil, err
	}
	if before.fresh(time.Now()) {
		return nil, ErrUnstable
	}
	data, err := b.readAll(file)
	if err != nil {
		return nil, err
	}
	same, err := b.readAgain(file, data)
	if err != nil {
		return nil, err
	}
	after, err := file.state()
	if err != nil {
		return nil, err
	}
	if !same || before != after {
		return nil, ErrUnstable
	}
	return data, nil
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
