package envfile

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// fileOf returns an env file of 64 KiB with that many variables, KEY0 to
// KEY<lines-1>.
func fileOf(lines int) []byte {
	var file strings.Builder
	for i := 0; i < lines; i++ {
		line := fmt.Sprintf("KEY%d=", i)
		fmt.Fprintf(&file, "%s%s\n", line, strings.Repeat("v", MaxFileBytes/lines-len(line)-1))
	}
	return []byte(file.String())
}

func BenchmarkParse(b *testing.B) {
	for _, lines := range []int{2, 100, 1000, 4000} {
		data := fileOf(lines)
		for _, keys := range [][]string{{"KEY1"}, keysOf(lines)} {
			b.Run(fmt.Sprintf("%d_of_%d_lines", len(keys), lines), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					if _, err := Parse(data, keys, Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRead is to be compared with os.ReadFile, which allocates the file.
func BenchmarkRead(b *testing.B) {
	const lines = 1000
	v := newVolume(b)
	v.file("config.env", string(fileOf(lines)))
	past := time.Now().Add(-time.Hour)
	v.check(os.Chtimes(v.path("config.env"), past, past))

	b.Run("os.ReadFile", func(b *testing.B) {
		b.SetBytes(MaxFileBytes)
		b.ReportAllocs()
		for i := 0; i < b.N; i++ {
			if _, err := os.ReadFile(v.path("config.env")); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, keys := range [][]string{{fmt.Sprint("KEY", lines-1)}, keysOf(100), keysOf(lines)} {
		for name, reader := range map[string]*Credentials{"": nil, "_for_a_user": stranger} {
			b.Run(fmt.Sprintf("%d_keys%s", len(keys), name), func(b *testing.B) {
				b.SetBytes(MaxFileBytes)
				b.ReportAllocs()
				for i := 0; i < b.N; i++ {
					if _, err := Read(context.Background(), v.root, "config.env", keys, Options{Reader: reader}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
