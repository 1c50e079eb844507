package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"podenv.dev/hack/internal/htmlreport"
)

// benchmarkOutput returns a file with lines in the Go benchmark format.
func benchmarkOutput(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(path, []byte("goos: linux\ngoarch: amd64\n"+strings.Join(lines, "\n")+"\nPASS\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func benchmarkLine(name string, nanoseconds float64) string {
	return fmt.Sprintf("Benchmark%s-4 \t 100 \t %g ns/op \t 0 B/op \t 0 allocs/op", name, nanoseconds)
}

func TestReadTakesMedians(t *testing.T) {
	m, plots, err := readMedians(benchmarkOutput(t, benchmarkLine("Read/a_file/by=envfile", 10), benchmarkLine("Read/a_file/by=envfile", 900), benchmarkLine("Read/a_file/by=envfile", 30),
		"BenchmarkCreatePod/by=stock 1000 2e6 cpu-ns/op 3e6 p99-ns/op"))
	if err != nil {
		t.Fatal(err)
	}
	if got := m[[2]string{"Read/a_file/by=envfile", "sec/op"}]; got < 29e-9 || got > 31e-9 {
		t.Errorf("read %v", m)
	}
	if got := m[[2]string{"CreatePod/by=stock", "p99-sec/op"}]; got != 3e-3 {
		t.Errorf("read %v", m)
	}
	want := []htmlreport.Plot{
		{Title: "Times of CreatePod", Rows: []htmlreport.PlotRow{{Name: "CreatePod/by=stock (processor)", Median: "2.000ms", Values: []float64{2e-3}}}},
		{Title: "Times of Read", Rows: []htmlreport.PlotRow{{Name: "Read/a_file/by=envfile", Median: "30.00ns", Values: []float64{1e-8, 9e-7, 3e-8}}}},
	}
	if diff := cmp.Diff(want, plots, cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteSaysWhatWasReached(t *testing.T) {
	m, _, err := readMedians(benchmarkOutput(t,
		benchmarkLine("MakeEnvironmentVariables/literals", 100), benchmarkLine("MakeEnvironmentVariables/read", 100), benchmarkLine("MakeEnvironmentVariables/fileKeyRefs", 260),
		benchmarkLine("Expand/a/by=expansion", 100), benchmarkLine("Expand/a/by=kubernetes", 200), benchmarkLine("Expand/b/by=expansion", 100), benchmarkLine("Expand/b/by=kubernetes", 130),
		benchmarkLine("Keep/a_flag/by=expansion", 10), benchmarkLine("Keep/a_flag/by=kubernetes", 15),
		benchmarkLine("Keep/a_line_of_80_bytes/by=expansion", 10), benchmarkLine("Keep/a_line_of_80_bytes/by=kubernetes", 20),
		benchmarkLine("Keep/a_script_of_64_KiB/by=expansion", 10), benchmarkLine("Keep/a_script_of_64_KiB/by=kubernetes", 300),
		benchmarkLine("Admission/no_presets", 900), benchmarkLine("Admission/3_of_100_presets_match", 51e3),
		benchmarkLine("Keep/variables_of_a_shell/by=expansion", 10), benchmarkLine("Keep/variables_of_a_shell/by=kubernetes", 30)))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeGoals(&out, slices.Concat(goalsOf("kubelet", m), goalsOf("expansion", m), goalsOf("admission", m)), m); err != nil {
		t.Fatal(err)
	}
	var got []string
	for row := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(row), " "))
	}
	want := []string{
		"RELATION ASKED REACHED MET",
		"100 fileKeyRefs / (100 literal values + one reading) <= 1.5 1.3 yes",
		"expand b: kubernetes / expansion, the worst of upstream's cases >= 1 1.3 yes",
		"keep a flag: kubernetes / expansion >= 2 1.5 no",
		"keep a line of 80 bytes: kubernetes / expansion >= 2 2 yes",
		"keep a script of 64 KiB: kubernetes / expansion >= 2 30 yes",
		"keep variables of a shell: kubernetes / expansion >= 2 3 yes",
		"admission no presets: s <= 1e-06 9e-07 yes",
		"admission no presets: allocations <= 0 0 yes",
		"admission 3 of 100 presets match: s <= 5e-05 5.1e-05 no",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A benchmark that did not run must not pass for one that reached its goal.
func TestAGoalNeedsItsBenchmarks(t *testing.T) {
	for _, group := range []string{"envfile", "names", "expansion", "kubelet", "admission", "scale"} {
		var out strings.Builder
		if err := writeGoals(&out, goalsOf(group, medians{}), medians{}); err == nil || !strings.Contains(err.Error(), "no benchmark") {
			t.Errorf("%s: error %v", group, err)
		}
	}
}
