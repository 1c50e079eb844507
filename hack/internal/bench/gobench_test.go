package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const twoRuns = `goos: linux
goarch: amd64
pkg: podenv.dev/test/bench
cpu: Some Processor
BenchmarkRead/2_keys/by=envfile-2         	     414	    1000 ns/op	  162701 B/op	      15 allocs/op
BenchmarkRead/2_keys/by=kubernetes-2      	       2	 9000000 ns/op	68360000 B/op	 1006000 allocs/op
BenchmarkParse/2_keys/by=envfile-2        	    4543	     500 ns/op	2458.61 MB/s	   65954 B/op	       7 allocs/op
PASS
goos: linux
goarch: amd64
pkg: podenv.dev/test/bench
cpu: Some Processor
BenchmarkRead/2_keys/by=envfile-2         	     414	    3000 ns/op	  162701 B/op	      15 allocs/op
BenchmarkRead/2_keys/by=kubernetes-2      	       2	11000000 ns/op	68360000 B/op	 1006000 allocs/op
BenchmarkParse/2_keys/by=envfile-2        	    4543	     500 ns/op	2458.61 MB/s	   65954 B/op	       7 allocs/op
PASS
`

func measured(t *testing.T, output string) *Measurements {
	t.Helper()
	m, err := parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTheMedianOfTheRunsCounts(t *testing.T) {
	m := measured(t, twoRuns)
	if want := []string{"Read/2_keys/by=envfile", "Read/2_keys/by=kubernetes", "Parse/2_keys/by=envfile"}; !slices.Equal(m.Names, want) {
		t.Errorf("names %q, want %q", m.Names, want)
	}
	if want := "linux/amd64, Some Processor"; m.Host != want {
		t.Errorf("host %q, want %q", m.Host, want)
	}
	for _, test := range []struct {
		name, unit string
		want       float64
	}{
		{"Read/2_keys/by=envfile", secPerOp, 2e-6},
		{"Read/2_keys/by=kubernetes", secPerOp, 10e-3},
		{"Read/2_keys/by=kubernetes", allocsPerOp, 1006000},
		{"Parse/2_keys/by=envfile", bytesPerSec, 2458.61e6},
	} {
		got, err := m.Value(test.name, test.unit)
		if err != nil || got < test.want*0.999999 || got > test.want*1.000001 {
			t.Errorf("%s: %g %s, %v; want %g", test.name, got, test.unit, err, test.want)
		}
	}
}

func TestWhatWasNotMeasuredIsAnErrorAndNoZero(t *testing.T) {
	m := measured(t, twoRuns)
	for _, missing := range [][2]string{{"Read/3_keys/by=envfile", secPerOp}, {"Read/2_keys/by=envfile", bytesPerSec}} {
		if v, err := m.Value(missing[0], missing[1]); err == nil {
			t.Errorf("%q: got %g", missing, v)
		}
	}
	if _, err := parse(strings.NewReader("PASS\n")); err == nil {
		t.Error("no benchmark is no error")
	}
	if _, err := kubeletReport(m, 2); err == nil {
		t.Error("a kubelet without its benchmark is no error")
	}
	if _, err := relations(m, readerAsks); err == nil {
		t.Error("relations of nothing are no error")
	}
}

func TestGoBenchRunsBenchmarks(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.test\n\ngo 1.21\n",
		"a_test.go": "package a\n\nimport \"testing\"\n\nfunc BenchmarkIt(b *testing.B) {}\n\nfunc BenchmarkOther(b *testing.B) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g := GoBench{Dir: dir, Env: []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, Package: ".", Bench: "^BenchmarkIt$", Time: "1x", Count: 2}
	m, err := g.Run(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"It"}; !slices.Equal(m.Names, want) {
		t.Errorf("ran %q, want %q", m.Names, want)
	}
	g.Bench = "^BenchmarkNothing$"
	if _, err := g.Run(t.Context(), nil); err == nil {
		t.Error("no benchmark is no error")
	}
}
