package envfile

import (
	"errors"

	"golang.org/x/sys/unix"
)

// descriptor is a file that is open for reading.
type descriptor int

func (d descriptor) readAt(p []byte, offset int) (n int, err error) {
	err = retryEINTR(func() (err error) {
		n, err = unix.Pread(int(d), p, int64(offset))
		return err
	})
	return n, err
}

func retryEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
