package envfile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The readings of one container start share a context. A pod whose files all
// have a lease holds up its start until the end of that context, not for each
// of its files.
func TestReadManyLeasedFilesEndsWithTheContext(t *testing.T) {
	v := newVolume(t)
	const files = 3000
	for i := 0; i < files; i++ {
		name := fmt.Sprint("f", i)
		v.file(name, inside)
		fd := v.open(name, unix.O_RDONLY)
		t.Cleanup(func() { unix.Close(fd) })
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
			t.Skipf("the file system for temporary files has no leases: %v", err)
		}
	}
	const limit = 200 * time.Millisecond
	contexts := map[string]func() (context.Context, context.CancelFunc){
		"deadline": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), limit)
		},
		"cancel": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(limit, cancel)
			return ctx, func() { timer.Stop(); cancel() }
		},
	}
	for name, newContext := range contexts {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := newContext()
			defer cancel()
			start, reasons := time.Now(), map[Reason]int{}
			for i := 0; i < files; i++ {
				_, err := read(ctx, v.root, fmt.Sprint("f", i), []string{"KEY"}, Options{}, walk)
				known, ok := err.(*Error)
				if !ok {
					t.Fatalf("file %d: want an error of this package, got %v", i, err)
				}
				reasons[known.Reason]++
			}
			// 50 ms for each file would be 150 s.
			if took := time.Since(start); took > files*50*time.Millisecond/4 {
				t.Errorf("want about %v, took %v", limit, took)
			}
			if len(reasons) != 2 || reasons[ReasonUnstable] == 0 || reasons[ReasonInterrupted] < files/2 {
				t.Errorf("want a few files unstable and the others interrupted, got %v", reasons)
			}
		})
	}
}

func TestReadAfterTheEndOfTheContext(t *testing.T) {
	v := newVolume(t)
	v.file("f", inside)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	before := openDescriptors(t)
	_, err := read(ended, v.root, "f", []string{"KEY"}, Options{}, walk)
	wantError(t, err, ErrInterrupted, 0)

	// A path can have thousands of steps: each of them looks at the context.
	root, err := openPath(unix.AT_FDCWD, v.root, unix.O_DIRECTORY)
	v.check(err)
	_, err = walk(ended, nil, root, "f")
	wantError(t, err, ErrInterrupted, 0)
	v.check(unix.Close(root))
	if after := openDescriptors(t); after != before {
		t.Errorf("%d file descriptors open before, %d after", before, after)
	}
}
