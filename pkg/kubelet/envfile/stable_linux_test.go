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
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// writtenFile is a file in memory that someone writes while it is read: before
// each of the reader's calls, counted from 0, write is called.
type writtenFile struct {
	content string
	changed time.Time
	calls   int
	write   func(f *writtenFile, call int)
	failure error
	// unwritable says that writers can be kept away, and lost that they were not
	// to the end.
	unwritable, lost bool
}

func (f *writtenFile) turn() error {
	if f.write != nil {
		f.write(f, f.calls)
	}
	f.calls++
	return f.failure
}

func (f *writtenFile) state() (state, error) {
	err := f.turn()
	changed := unix.NsecToTimespec(f.changed.UnixNano())
	return state{size: int64(len(f.content)), mtime: changed, ctime: changed}, err
}

func (f *writtenFile) keepWriters() bool { return f.unwritable }

func (f *writtenFile) letWriters() bool { return !f.lost }

// readAt gives no more than 4 bytes at once, so that a writer gets in between.
func (f *writtenFile) readAt(p []byte, offset int) (int, error) {
	if err := f.turn(); err != nil {
		return 0, err
	}
	if offset >= len(f.content) {
		return 0, nil
	}
	return copy(p[:min(4, len(p))], f.content[offset:]), nil
}

func TestReadStable(t *testing.T) {
	const before, after = "A=old-old-old\n", "A=new-new-new\n"
	longAgo := time.Now().Add(-time.Hour)
	tick := func(f *writtenFile) { f.changed = f.changed.Add(time.Millisecond) }
	// In these, call 0 asks for the state, and calls 1 to 5 are the first
	// reading of 14 bytes, 6 to 10 the second.
	testCases := []struct {
		name  string
		write func(f *writtenFile, call int)
		want  string
		err   *Error
	}{
		{name: "nobody writes", want: before},
		{name: "replaced between two reads", want: after, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content = after
				tick(f)
			}
		}},
		{name: "changed and changed back in each reading", want: before, write: func(f *writtenFile, call int) {
			switch call {
			case 3, 8:
				f.content = after
				tick(f)
			case 4, 9:
				f.content = before
				tick(f)
			}
		}},
		{name: "a write that had begun before goes on", want: after, write: func(f *writtenFile, call int) {
			// Its time is set when it begins, so that only the bytes change.
			if call == 3 {
				f.content = after
			}
		}},
		{name: "grows", want: before + after, write: func(f *writtenFile, call int) {
			if call == 5 {
				f.content = before + after
				tick(f)
			}
		}},
		{name: "shrinks", want: "A=\n", write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content = "A=\n"
				tick(f)
			}
		}},
		{name: "changes after it was read and before its state is asked for again", want: after, write: func(f *writtenFile, call int) {
			if call == 11 {
				f.content = after
				tick(f)
			}
		}},
		{name: "changed and changed back in each reading, all in the same tick of the clock", want: before, write: func(f *writtenFile, call int) {
			if call == 0 {
				f.changed = time.Now()
			}
			f.content = before
			if call%5 == 3 && time.Since(f.changed) < 10*time.Millisecond {
				f.content = after
			}
		}},
		{name: "never stops changing", err: ErrUnstable, write: func(f *writtenFile, call int) {
			f.content = []string{before, after}[call%2]
			tick(f)
		}},
		{name: "grows over the limit", err: ErrLimitExceeded, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.content += strings.Repeat("\n", MaxFileBytes)
				tick(f)
			}
		}},
		{name: "the disk fails", err: ErrReadFailed, write: func(f *writtenFile, call int) {
			if call == 3 {
				f.failure = unix.EIO
			}
		}},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := newBuffer(t).readStable(&writtenFile{content: before, changed: longAgo, write: tc.write})
			if tc.err != nil {
				wantError(t, err, tc.err, 0)
				return
			}
			if err != nil || string(got) != tc.want {
				t.Errorf("want %q, got %q, %v", tc.want, got, err)
			}
		})
	}
}

func TestReadStableReadsOnceWhatNobodyCanWrite(t *testing.T) {
	// 14 bytes in pieces of 4, and then the end of the file.
	const reading = 5
	testCases := []struct {
		name  string
		file  writtenFile
		calls int
		err   *Error
	}{
		{name: "one reading, however new the file is", calls: reading, file: writtenFile{unwritable: true, changed: time.Now()}},
		{name: "two more, and the state before and after, if it could be written after all", calls: 3*reading + 2, file: writtenFile{unwritable: true, lost: true}},
		{name: "two, and the state before and after, if it can be written", calls: 2*reading + 2},
		{name: "an error is one at once", calls: 1, file: writtenFile{unwritable: true, failure: unix.EIO}, err: ErrReadFailed},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			tc.file.content = "A=old-old-old\n"
			got, err := newBuffer(t).readStable(&tc.file)
			if tc.err != nil {
				wantError(t, err, tc.err, 0)
			} else if err != nil || string(got) != tc.file.content {
				t.Errorf("want %q, got %q, %v", tc.file.content, got, err)
			}
			if tc.file.calls != tc.calls {
				t.Errorf("want %d calls, got %d", tc.calls, tc.file.calls)
			}
		})
	}
}

func TestKeepWriters(t *testing.T) {
	v := newVolume(t)
	v.file("f", inside)
	opened := v.open("f", unix.O_RDONLY)
	defer unix.Close(opened)
	file := descriptor(opened)
	if !file.keepWriters() {
		t.Skip("the file system for temporary files has no leases")
	}
	if fd, err := unix.Open(v.path("f"), unix.O_WRONLY|unix.O_NONBLOCK, 0); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the file could be opened for writing: %d, %v", fd, err)
	}
	if !file.letWriters() {
		t.Error("the writers were not kept away to the end")
	}
	if file.letWriters() {
		t.Error("there was nothing any more to keep the writers away")
	}

	written := v.open("f", unix.O_RDWR)
	if file.keepWriters() {
		t.Error("there is a writer")
	}
	mapped, err := unix.Mmap(written, 0, len(inside), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	v.check(err)
	v.check(unix.Close(written))
	if file.keepWriters() {
		t.Error("there is a mapping that can be written")
	}
	v.check(unix.Munmap(mapped))
	if !file.keepWriters() || !file.letWriters() {
		t.Error("there is no writer any more")
	}
}

func (v volume) open(name string, flags int) int {
	v.Helper()
	fd, err := unix.Open(v.path(name), flags|unix.O_CLOEXEC, 0)
	v.check(err)
	return fd
}

func newBuffer(t testing.TB) *buffer {
	b := buffers.Get().(*buffer)
	t.Cleanup(b.release)
	return b
}

func TestFresh(t *testing.T) {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 500, time.UTC)
	testCases := []struct {
		name  string
		ctime time.Time
		want  bool
	}{
		{name: "changed in this very tick", ctime: now, want: true},
		{name: "changed a tick ago", ctime: now.Add(-10 * time.Millisecond), want: true},
		{name: "changed a while ago", ctime: now.Add(-30 * time.Millisecond), want: false},
		{name: "changed a second ago, in full seconds", ctime: now.Add(-time.Second - 500), want: true},
		{name: "changed a while ago, in full seconds", ctime: now.Add(-3*time.Second - 500), want: false},
		{name: "changed before the clock was set back an hour", ctime: now.Add(time.Hour), want: false},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			s := state{ctime: unix.NsecToTimespec(tc.ctime.UnixNano())}
			if got := s.fresh(now); got != tc.want {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
}

// On a real file system: every value is one that a single write made.
func TestReadWhileTheFileIsRewritten(t *testing.T) {
	content := func(i int) string {
		return "KEY=" + strings.Repeat(string(rune('a'+i%26)), MaxValueBytes) + "\n"
	}
	writers := map[string]func(v volume, i int) error{
		"in place": func(v volume, i int) error {
			f, err := os.OpenFile(v.path("f"), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = io.WriteString(f, content(i))
			return err
		},
		"in place, without ever closing it": func() func(v volume, i int) error {
			var f *os.File
			return func(v volume, i int) (err error) {
				if f == nil {
					if f, err = os.OpenFile(v.path("f"), os.O_WRONLY, 0); err != nil {
						return err
					}
					v.Cleanup(func() { f.Close() })
				}
				_, err = f.WriteAt([]byte(content(i)), 0)
				return err
			}
		}(),
		"truncated first": func(v volume, i int) error {
			return os.WriteFile(v.path("f"), []byte(content(i)), 0o600)
		},
		"by a rename": func(v volume, i int) error {
			next := v.path(fmt.Sprint("next", i%2))
			if err := os.WriteFile(next, []byte(content(i)), 0o600); err != nil {
				return err
			}
			return os.Rename(next, v.path("f"))
		},
	}
	for name, write := range writers {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.file("f", content(0))
			stop := make(chan struct{})
			written := make(chan error, 1)
			go func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						written <- nil
						return
					// Pauses that are sometimes long enough for a reading.
					case <-time.After(time.Duration(i%5) * 10 * time.Millisecond):
					}
					if err := write(v, i); err != nil {
						written <- err
						return
					}
				}
			}()
			changes, last := 0, ""
			for deadline := time.Now().Add(20 * time.Second); changes < 20; {
				if time.Now().After(deadline) {
					t.Fatalf("waited for 20 changes of the value, saw %d", changes)
				}
				got, err := v.lookup("f", byKernel)
				switch {
				case err == nil && got == strings.Repeat(got[:1], MaxValueBytes):
					if got != last {
						changes++
					}
					last = got
				case errors.Is(err, ErrUnstable):
				case name == "truncated first" && errors.Is(err, ErrKeyNotFound):
					// The empty file is a state too.
				default:
					t.Fatalf("a mix of two states, or an unexpected error: %d bytes, %v", len(got), err)
				}
			}
			close(stop)
			v.check(<-written)
		})
	}
}

func TestReadWipesItsBuffer(t *testing.T) {
	for name, flags := range map[string]int{"one reading": unix.O_RDONLY, "two readings": unix.O_RDWR} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.file("f", inside)
			// With a writer around, the file is read twice.
			defer unix.Close(v.open("f", flags))
			fd, err := open(v.root, "f", nil, wholePath)
			v.check(err)
			defer unix.Close(fd)
			b := new(buffer)
			if _, err := b.readStable(descriptor(fd)); err != nil {
				t.Fatal(err)
			}
			b.release()
			if *b != (buffer{}) {
				t.Error("there is something left of the file")
			}
		})
	}
}
