package main

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// How long overwriteMapped has the file mapped, and then leaves it alone.
const (
	mappedFor = 300 * time.Millisecond
	restsFor  = 50 * time.Millisecond
)

// overwriteMapped turns each a of the file at path into b and each b into a, byte by byte
// through a shared mapping, again and again until ctx ends. No descriptor is open
// meanwhile. Whenever it rests, the file is in one state.
func overwriteMapped(ctx context.Context, path string) error {
	for ctx.Err() == nil {
		if err := withMapping(path, func(content []byte) {
			for start := time.Now(); time.Since(start) < mappedFor; {
				for i, c := range content {
					switch c {
					case 'a':
						content[i] = 'b'
					case 'b':
						content[i] = 'a'
					}
				}
			}
		}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(restsFor):
		}
	}
	return nil
}

// withMapping calls change with the content of the file at path, mapped.
func withMapping(path string, change func(content []byte)) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	content, err := unix.Mmap(int(file.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err := file.Close(); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	change(content)
	return unix.Munmap(content)
}
