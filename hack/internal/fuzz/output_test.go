package fuzz

import (
	"io"
	"strings"
	"testing"
	"time"
)

const cleanRun = `fuzz: elapsed: 0s, gathering baseline coverage: 0/192 completed
fuzz: elapsed: 0s, gathering baseline coverage: 192/192 completed, now fuzzing with 2 workers
fuzz: elapsed: 3s, execs: 325017 (108336/sec), new interesting: 11 (total: 202)
fuzz: elapsed: 1m6s, execs: 10000000 (118402/sec), new interesting: 12 (total: 203)
PASS
ok  	example.test/a	66.692s
`

const failedRun = `fuzz: elapsed: 0s, gathering baseline coverage: 0/1 completed
fuzz: elapsed: 0s, gathering baseline coverage: 1/1 completed, now fuzzing with 2 workers
fuzz: minimizing 38-byte failing input file
fuzz: elapsed: 3s, execs: 1203 (401/sec), new interesting: 3 (total: 4)
--- FAIL: FuzzBad (3.02s)
    --- FAIL: FuzzBad (0.00s)
        a_test.go:20: reads "x" as "y"
    
    Failing input written to testdata/fuzz/FuzzBad/af69258a12129d6c
    To re-run:
    go test -run=FuzzBad/af69258a12129d6c
FAIL
exit status 1
FAIL	example.test/a	3.030s
`

const failedSeed = `fuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed
failure while testing seed corpus entry: FuzzBad/seed#1
fuzz: elapsed: 0s, gathering baseline coverage: 1/2 completed
--- FAIL: FuzzBad (0.02s)
    --- FAIL: FuzzBad (0.00s)
        a_test.go:20: reads "x" as "y"
FAIL
exit status 1
FAIL	example.test/a	0.030s
`

// follow feeds output in pieces that end in the midst of lines, as a pipe does.
func follow(t *testing.T, output string) *follower {
	t.Helper()
	f := &follower{wanted: 10_000_000}
	for piece := range strings.SplitSeq(output, "a") {
		if _, err := io.WriteString(f, piece); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "a"); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestACleanRunIsCounted(t *testing.T) {
	f := follow(t, cleanRun)
	if f.executions != 10_000_000 || f.interesting != 12 || f.elapsed != 66*time.Second {
		t.Errorf("%d executions, %d new interesting in %s; want 10000000, 12 and 1m6s", f.executions, f.interesting, f.elapsed)
	}
	if len(f.failure) > 0 {
		t.Errorf("it failed: %q", f.failure)
	}
}

func TestAFailureNamesItsInputAndHowToRunItAgain(t *testing.T) {
	target := Target{Module: Module{Dir: "/src", Env: []string{"GOFLAGS=-mod=readonly -trimpath"}}, Package: "example.test/a", Dir: "/src/a", Name: "FuzzBad"}
	for name, test := range map[string]struct{ output, input, again string }{
		"an input that was found": {failedRun,
			"failing input: /src/a/testdata/fuzz/FuzzBad/af69258a12129d6c\n",
			"run it again: cd /src && GOFLAGS='-mod=readonly -trimpath' go test '-run=^FuzzBad/af69258a12129d6c$' example.test/a\n"},
		"a seed": {failedSeed,
			"failing seed: FuzzBad/seed#1\n",
			"run it again: cd /src && GOFLAGS='-mod=readonly -trimpath' go test '-run=^FuzzBad/seed#1$' example.test/a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := follow(t, test.output).explain(target)
			for _, want := range []string{test.input, test.again, `reads "x" as "y"`} {
				if !strings.Contains(got, want) {
					t.Errorf("it lacks %q:\n%s", want, got)
				}
			}
			if strings.Contains(got, "exit status") {
				t.Errorf("it says more than the failure:\n%s", got)
			}
		})
	}
}

func TestGroupedNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 10_000_000: "10,000,000"} {
		if got := Grouped(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}
