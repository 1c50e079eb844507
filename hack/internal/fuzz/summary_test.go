package fuzz

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/junit"
)

func TestSummaryShowsEveryTargetAndEndsInTheCounts(t *testing.T) {
	at := func(name string) Target { return Target{Package: "example.test/a", Name: name} }
	var b strings.Builder
	counts := Summary(&b, "fuzz.xml", []Result{
		{Target: at("FuzzGood"), Executions: 10_000_000, Interesting: 12, Took: 66 * time.Second},
		{Target: at("FuzzBad"), Executions: 1203, Failure: "failing input: f\nrun it again: go test"},
		{Target: at("FuzzBroken"), Err: errors.New("exit status 2")},
		{Target: at("FuzzLater"), Err: context.Canceled},
	})
	if want := (junit.Counts{Passed: 1, Failed: 2, Skipped: 1}); counts != want {
		t.Errorf("counted %v, want %v", counts, want)
	}
	const want = `TARGET                     EXECUTIONS  NEW INTERESTING  TIME  RESULT
example.test/a.FuzzGood    10,000,000  12               1m6s  passed
example.test/a.FuzzBad     1,203       0                0s    FAILED
example.test/a.FuzzBroken  0           0                0s    error
example.test/a.FuzzLater   0           0                0s    interrupted

FAILED  example.test/a.FuzzBad
failing input: f
run it again: go test

FAILED  example.test/a.FuzzBroken
exit status 2

JUnit report: fuzz.xml
1 passed, 2 failed, 1 skipped
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
