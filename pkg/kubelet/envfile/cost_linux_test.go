package envfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// maxMemory is what one reading may allocate in all, in bytes.
const maxMemory = 1 << 20

// mostSteps is what a walk takes at most: the last step can be the dearest one.
const mostSteps = maxSteps + 1 + mountSteps + aclSteps + maxXattr/aclBytesPerStep

// steppers are the ways to walk that differ in what a step costs.
var steppers = []struct {
	name  string
	mount bool // as on a kernel without openat2
	user  *Credentials
}{
	{name: "as root"},
	{name: "as root, without openat2", mount: true},
	{name: "as a user", user: &Credentials{UID: id(4242)}},
	{name: "as a user, without openat2", user: &Credentials{UID: id(4242)}, mount: true},
}

// longWalks are volumes with a path of more steps than a reading takes.
var longWalks = []struct {
	name, path string
	make       func(v volume)
}{
	// A walk that copies what is left of its targets at each step back copies
	// gigabytes.
	{"links full of steps back", "l0", func(v volume) {
		v.dir("d")
		for i := 0; i < 39; i++ {
			target := fmt.Sprint("l", i+1)
			if i == 38 {
				target = "d"
			}
			v.link(fmt.Sprint("l", i), target+strings.Repeat("/../d", 818))
		}
	}},
	{"steps back from far below", "l", func(v volume) {
		deep := strings.TrimSuffix(strings.Repeat("d/", 400), "/")
		v.dir(deep)
		v.link("l", deep+strings.Repeat("/../d", 600))
	}},
	{"dots", "l0", func(v volume) {
		for i := 0; i < 40; i++ {
			v.link(fmt.Sprint("l", i), strings.Repeat("./", 2000)+fmt.Sprint("l", i+1))
		}
	}},
}

// cost is what a reading took.
type cost struct {
	steps  int
	memory uint64
	time   time.Duration
}

func (v volume) costOf(path string, user *Credentials, mount bool) (took cost, err error) {
	v.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err = read(context.Background(), v.root, path, []string{"KEY"}, Options{Reader: user},
		func(ctx context.Context, r *reader, root int, path string) (found node, err error) {
			w := walker{reader: r}
			if mount {
				if w.mount, err = mountOf(root); err != nil {
					return node{}, err
				}
			}
			found, err = w.walk(ctx, root, path)
			took.steps = w.taken()
			return found, err
		})
	took.time = time.Since(start)
	runtime.ReadMemStats(&after)
	took.memory = after.TotalAlloc - before.TotalAlloc
	return took, err
}

// check is what holds for any volume.
func (c cost) check(t testing.TB) {
	t.Helper()
	if c.steps > mostSteps || c.memory > maxMemory {
		t.Errorf("want at most %d steps and %d bytes, got %d and %d", mostSteps, maxMemory, c.steps, c.memory)
	}
}

// The longest walk costs about what a plain path of as many steps does, not a
// multiple of what its links have in them.
func TestLongestWalk(t *testing.T) {
	for _, by := range steppers {
		t.Run(by.name, func(t *testing.T) {
			// Which is read, with ACLs too.
			const plainSteps = 500
			plain := newVolumeIn(t, inMemory(t))
			plain.dir(strings.Repeat("d/", plainSteps))
			plain.file(strings.Repeat("d/", plainSteps)+"f", inside)
			var fastest time.Duration
			for i := 0; i < 5; i++ {
				took, err := plain.costOf(strings.Repeat("d/", plainSteps)+"f", by.user, by.mount)
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 || took.time < fastest {
					fastest = took.time
				}
			}
			for _, long := range longWalks {
				for _, acl := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, ACLs %v", long.name, acl), func(t *testing.T) {
						v := newVolumeIn(t, inMemory(t))
						long.make(v)
						if acl {
							v.largestACLs()
						}
						times := make([]time.Duration, 5)
						for i := range times {
							took, err := v.costOf(long.path, by.user, by.mount)
							wantError(t, err, ErrLimitExceeded, 0)
							if err.Error() != errSteps.Error() {
								t.Errorf("want %q, got %q", errSteps, err)
							}
							took.check(t)
							times[i] = took.time
						}
						// Six times the steps, and much room for a busy machine.
						if took := slices.Min(times); took > 50*fastest {
							t.Errorf("it took %v, a path of %d directories %v", took, plainSteps, fastest)
						}
					})
				}
			}
		})
	}
}

// FuzzLongestWalk looks for a volume that costs more. Links lead to each other,
// each with steps behind it that are repeated; the fuzzer keeps what runs a part of
// the walk more often than anything before.
func FuzzLongestWalk(f *testing.F) {
	back := bytes.Repeat([]byte{1, 0, 255}, fuzzLinks)
	f.Add(back, byte(0))
	f.Add(bytes.Repeat([]byte{1, 1, 255}, fuzzLinks), byte(1))
	f.Add(append([]byte{1, 3, 255}, back...), byte(2))
	f.Add([]byte{0, 2, 9, 1, 4, 9}, byte(3))
	dir := inMemory(f)
	f.Fuzz(func(t *testing.T, links []byte, stepper byte) {
		node, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(node)
		v := newVolumeIn(t, node)
		v.dir("d/d/d/d")
		v.file("f", inside)
		repeated := []string{"/../d", "/.", "/d/..", "/d/d/d/../../..", "/d", "/"}
		for i := 0; i < fuzzLinks && len(links) >= 3; i, links = i+1, links[3:] {
			target := []string{"d", "f", fmt.Sprint("l", i+1), fmt.Sprint("l", int(links[0])%fuzzLinks)}[links[0]%4]
			tail := repeated[int(links[1])%len(repeated)]
			target += strings.Repeat(tail, min(int(links[2])*8, (maxTarget-16)/len(tail)))
			v.link(fmt.Sprint("l", i), target)
		}
		by := steppers[int(stepper)%len(steppers)]
		took, _ := v.costOf("l0", by.user, by.mount)
		took.check(t)
	})
}

const fuzzLinks = 40

// BenchmarkLongestWalk is what a hostile volume can cost: at most 10 ms of processor
// time and 1 MiB of memory (docs/features.md).
func BenchmarkLongestWalk(b *testing.B) {
	for _, by := range steppers {
		for _, long := range longWalks {
			for _, acl := range []string{"", ", ACLs"} {
				if acl != "" && by.user == nil {
					continue // never looked at
				}
				b.Run(by.name+"/"+long.name+acl, func(b *testing.B) {
					v := newVolumeIn(b, inMemory(b))
					long.make(v)
					if acl != "" {
						v.largestACLs()
					}
					b.ReportAllocs()
					b.ResetTimer()
					for i := 0; i < b.N; i++ {
						if _, err := v.costOf(long.path, by.user, by.mount); err == nil {
							b.Fatal("want an error")
						}
					}
				})
			}
		}
	}
}

// inMemory returns a directory of a tmpfs, where ACLs are longest, or of the file
// system for temporary files.
func inMemory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "envfile-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// largestACLs gives the volume and the first directories in it the longest ACL that
// the file system takes, where it takes any.
func (v volume) largestACLs() {
	v.Helper()
	const none = ^uint32(0)
	for path := v.root; ; path += "/d" {
		if _, err := os.Stat(path); err != nil || len(path) > len(v.root)+100 {
			return
		}
		for entries := maxXattr/aclEntrySize - 8; ; entries -= entries / 8 {
			list := binary.LittleEndian.AppendUint32(nil, aclVersion)
			add := func(tag uint16, id uint32) {
				list = binary.LittleEndian.AppendUint16(list, tag)
				list = binary.LittleEndian.AppendUint16(list, 7)
				list = binary.LittleEndian.AppendUint32(list, id)
			}
			add(1, none)
			add(aclOwningGroup, none)
			for i := 0; i < entries; i++ {
				add(aclGroup, uint32(10_000+i*7919%entries))
			}
			add(aclMask, none)
			add(aclOther, none)
			err := unix.Setxattr(path, aclName, list, 0)
			if err == nil || errors.Is(err, unix.EOPNOTSUPP) {
				break
			}
			if entries < 10 {
				v.Fatal(err)
			}
		}
	}
}
