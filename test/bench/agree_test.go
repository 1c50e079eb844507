package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podenv.dev/pkg/kubelet/envfile"
)

// What gives other values does other work, and cannot be compared.
func TestEveryContestantGivesTheSameValues(t *testing.T) {
	for _, c := range cases {
		dir := volume(t, c.lines)
		chosen := spread(c.keys, c.lines)
		for _, by := range contestants {
			t.Run(fmt.Sprintf("%d keys of %d by %s", c.keys, c.lines, by.name), func(t *testing.T) {
				values := make([]string, len(chosen))
				if err := by.read(dir, fileName, keysOf(chosen), values); err != nil {
					t.Fatal(err)
				}
				compare(t, by, c.lines, chosen, values)
				if by.parse == nil {
					return
				}
				clear(values)
				if err := by.parse(contents(c.lines), keysOf(chosen), values); err != nil {
					t.Fatal(err)
				}
				compare(t, by, c.lines, chosen, values)
			})
		}
	}
}

func compare(t *testing.T, by contestant, lines int, chosen []int, values []string) {
	t.Helper()
	for i, number := range chosen {
		want := value(number, lines)
		if by.quotes {
			want = "'" + want + "'"
		}
		if values[i] != want {
			t.Fatalf("%s: got %d bytes %.20q…, want %d bytes %.20q…", key(number), len(values[i]), values[i], len(want), want)
		}
	}
}

func TestFilesAreAsLongAsTheirLinesLet(t *testing.T) {
	for _, c := range cases {
		dir := volume(t, c.lines)
		info, err := os.Stat(filepath.Join(dir, fileName))
		if err != nil {
			t.Fatal(err)
		}
		if size := info.Size(); size > envfile.MaxFileBytes || size <= int64(envfile.MaxFileBytes-c.lines) {
			t.Errorf("%d lines are %d bytes, want just %d", c.lines, size, envfile.MaxFileBytes)
		}
		if age := time.Since(info.ModTime()); age < time.Minute {
			t.Errorf("the file changed %s ago: envfile would wait", age)
		}
	}
}
