package suite

import (
	"regexp"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

var (
	planned = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)
	ended   = regexp.MustCompile(`^(•|S|P)( \[[A-Z ]+\])? \[[0-9.]+ seconds\]`)
)

// follower writes Ginkgo's verbose output to the step's log, and says in the step how
// far the specs are.
type follower struct {
	step    *progress.Step
	partial []byte
	planned string
	done    int
	atName  bool // the line ahead names the spec that just ended
}

// Write implements io.Writer.
func (f *follower) Write(p []byte) (int, error) {
	if n, err := f.step.Log().Write(p); err != nil {
		return n, err
	}
	f.partial = run.EachLine(append(f.partial, p...), f.line)
	return len(p), nil
}

func (f *follower) line(line string) {
	switch {
	case f.atName:
		f.atName = false
		f.step.Now("%d of %s specs, last: %s", f.done, f.planned, shorten(line))
	case ended.MatchString(line):
		f.done++
		f.atName = true
	default:
		if match := planned.FindStringSubmatch(line); match != nil {
			f.planned = match[1]
		}
	}
}

// tags are what the framework puts before and Ginkgo behind a spec's own words.
var tags = regexp.MustCompile(`\[[^\]]*\]\s*`)

func shorten(name string) string { return tags.ReplaceAllString(name, "") }
