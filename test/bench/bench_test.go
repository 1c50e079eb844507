package bench

import (
	"os"
	"path/filepath"
	"testing"
)

// cases are what is read: keys of the lines of one file.
var cases = []struct {
	name        string
	keys, lines int
	// read and parse say which benchmark has the case.
	read, parse bool
}{
	{name: "1000_keys_of_1000", keys: 1000, lines: 1000, read: true, parse: true},
	{name: "100_keys_of_1000", keys: 100, lines: 1000, read: true},
	{name: "100_keys_of_100", keys: 100, lines: 100, read: true},
	{name: "the_last_key_of_1000", keys: 1, lines: 1000, read: true, parse: true},
	{name: "the_last_key_of_10", keys: 1, lines: 10, parse: true},
	{name: "2_values_of_32_KiB", keys: 2, lines: 2, read: true, parse: true},
}

// BenchmarkRead goes from a file on the disk to values; os.ReadFile, which goes only
// to the file's bytes, is the floor.
func BenchmarkRead(b *testing.B) {
	for _, c := range cases {
		if !c.read {
			continue
		}
		dir, keys, values := volume(b, c.lines), keysOf(spread(c.keys, c.lines)), make([]string, c.keys)
		b.Run(c.name, func(b *testing.B) {
			for _, by := range contestants {
				b.Run("by="+by.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if err := by.read(dir, fileName, keys, values); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			b.Run("by=os.ReadFile", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// BenchmarkParse is BenchmarkRead without the file.
func BenchmarkParse(b *testing.B) {
	for _, c := range cases {
		if !c.parse {
			continue
		}
		data, keys, values := contents(c.lines), keysOf(spread(c.keys, c.lines)), make([]string, c.keys)
		b.Run(c.name, func(b *testing.B) {
			for _, by := range contestants {
				if by.parse == nil {
					continue
				}
				b.Run("by="+by.name, func(b *testing.B) {
					b.SetBytes(int64(len(data)))
					b.ReportAllocs()
					for b.Loop() {
						if err := by.parse(data, keys, values); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}
