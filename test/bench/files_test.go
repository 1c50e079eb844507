package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/pkg/kubelet/envfile"
)

const fileName = "config.env"

// key and value are those of an env file's line number i, from 0.
func key(i int) string { return fmt.Sprintf("KEY%d", i) }

// value has the length that makes a file of that many lines as long as an env file
// may be.
func value(i, lines int) string {
	distinct := fmt.Sprintf("%d.", i)
	const around = len("=''\n")
	return distinct + strings.Repeat("v", envfile.MaxFileBytes/lines-len(key(i))-around-len(distinct))
}

// contents returns an env file of lines variables, as long as one may be, in the one
// syntax that every contestant takes.
func contents(lines int) []byte {
	var file strings.Builder
	for i := range lines {
		fmt.Fprintf(&file, "%s='%s'\n", key(i), value(i, lines))
	}
	return []byte(file.String())
}

// volume returns a folder with an env file of that many lines. The file's last change
// is long past, as it is when a container starts again: within some milliseconds of a
// change, envfile waits.
func volume(tb testing.TB, lines int) string {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, fileName)
	if err := os.WriteFile(file, contents(lines), 0o644); err != nil {
		tb.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, past, past); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// spread returns the numbers of n of that many lines, evenly spread, the last line
// among them.
func spread(n, lines int) []int {
	chosen := make([]int, n)
	for i := range chosen {
		chosen[i] = (i+1)*lines/n - 1
	}
	return chosen
}

func keysOf(numbers []int) []string {
	keys := make([]string, len(numbers))
	for i, number := range numbers {
		keys[i] = key(number)
	}
	return keys
}
