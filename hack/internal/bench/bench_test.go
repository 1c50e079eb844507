package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// output returns a file with lines in the Go benchmark format.
func output(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(path, []byte("goos: linux\ngoarch: amd64\n"+strings.Join(lines, "\n")+"\nPASS\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func line(name string, nanoseconds float64) string {
	return fmt.Sprintf("Benchmark%s-4 \t 100 \t %g ns/op \t 0 B/op \t 0 allocs/op", name, nanoseconds)
}

func TestReadTakesMedians(t *testing.T) {
	m, err := Read(output(t, line("Read/a_file/by=envfile", 10), line("Read/a_file/by=envfile", 900), line("Read/a_file/by=envfile", 30)))
	if err != nil {
		t.Fatal(err)
	}
	if got := m[[2]string{"Read/a_file/by=envfile", "sec/op"}]; got < 29e-9 || got > 31e-9 {
		t.Errorf("read %v", m)
	}
}
