package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each relation asks for benchmarks that test/bench has: its cases and contestants
// are named there.
func TestRelationsAreOfBenchmarksThatThereAre(t *testing.T) {
	source := benchmarks(t)
	for _, ask := range slices.Concat(readerAsks, nameAsks, keepAsks) {
		for _, name := range []string{ask.over, ask.under} {
			if name == "" {
				continue
			}
			parts := strings.Split(name, "/")
			_, contestant, _ := strings.Cut(name, "/by=")
			for _, want := range []string{"func Benchmark" + parts[0] + "(", fmt.Sprintf("name: %q", parts[1]), contestant} {
				if !strings.Contains(source, want) {
					t.Errorf("%s: test/bench lacks %s", name, want)
				}
			}
		}
	}
}

// benchmarks returns the source of test/bench.
func benchmarks(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../../../test/bench/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	return source.String()
}
