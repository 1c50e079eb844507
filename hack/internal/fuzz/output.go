package fuzz

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// What go test -fuzz prints.
var (
	execLine    = regexp.MustCompile(`^fuzz: elapsed: (\S+), execs: (\d+) \((\d+)/sec\)(?:, new interesting: (\d+) \(total: \d+\))?`)
	inputLine   = regexp.MustCompile(`^\s*Failing input written to (\S+)`)
	seedLine    = regexp.MustCompile(`^failure while testing seed corpus entry: (\S+)`)
	failureLine = regexp.MustCompile(`^--- FAIL: `)
	endLine     = regexp.MustCompile(`^(PASS|FAIL|exit status \d+)`)
)

// follower reads the output of go test -fuzz, keeps it in the step's log, and says in
// the step how far it is.
type follower struct {
	step    *progress.Step
	wanted  int64
	partial []byte

	executions  int64
	interesting int
	elapsed     time.Duration // as go says it
	input       string        // file of the failing input, relative to the package
	seed        string        // name of the failing seed: FuzzX/seed#0
	failure     []string      // lines of the failure
	failing     bool
}

// maxFailure is how many lines of a failure are kept; an input may print any number.
const maxFailure = 60

// Write implements io.Writer.
func (f *follower) Write(p []byte) (int, error) {
	if n, err := f.step.Log().Write(p); err != nil {
		return n, err
	}
	f.partial = run.EachLine(append(f.partial, p...), f.line)
	return len(p), nil
}

func (f *follower) line(line string) {
	if match := execLine.FindStringSubmatch(line); match != nil {
		f.count(match)
		return
	}
	if match := inputLine.FindStringSubmatch(line); match != nil {
		f.input = match[1]
	}
	if match := seedLine.FindStringSubmatch(line); match != nil {
		f.seed = match[1]
	}
	switch {
	case endLine.MatchString(line):
		f.failing = false
	case failureLine.MatchString(line), seedLine.MatchString(line):
		f.failing = true
	case strings.HasPrefix(line, "fuzz: "):
		f.step.Now("%s", strings.TrimPrefix(line, "fuzz: "))
	}
	if f.failing && len(f.failure) < maxFailure {
		f.failure = append(f.failure, line)
	}
}

// count takes a line of progress. Its numbers are digits; one too large for an int64
// cannot be reached.
func (f *follower) count(match []string) {
	f.executions, _ = strconv.ParseInt(match[2], 10, 64)
	f.interesting, _ = strconv.Atoi(match[4])
	f.elapsed, _ = time.ParseDuration(match[1])
	perSecond, _ := strconv.ParseInt(match[3], 10, 64)
	left := ""
	if perSecond > 0 && f.executions < f.wanted {
		left = fmt.Sprintf(", %s to go", (time.Duration((f.wanted-f.executions)/perSecond) * time.Second))
	}
	f.step.Now("%s of %s executions, %s/s, %d new interesting%s",
		Grouped(f.executions), Grouped(f.wanted), Grouped(perSecond), f.interesting, left)
}

// Grouped writes n as people read large numbers: 10,000,000.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
