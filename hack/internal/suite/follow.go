package suite

import (
	"fmt"
	"regexp"
	"strings"

	"podenv.dev/hack/internal/progress"
)

var (
	planned = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)
	ended   = regexp.MustCompile(`^(•|S|P)( \[[A-Z ]+\])? \[[0-9.]+ seconds\]`)
)

// by is a step of a spec, and when it began.
var by = regexp.MustCompile(`^\s+STEP: (.*?)( @ \S+ \S+)?$`)

// rule is what Ginkgo draws between specs.
var rule = regexp.MustCompile(`^-{30}$`)

// follower reads the lines of Ginkgo's verbose output, and says in the step how far the
// specs are.
type follower struct {
	step    *progress.Step
	planned string
	done    int
	failed  int
	last    string // the line before
	alone   string // the spec that runs alone, if one does
}

func (f *follower) line(line string) {
	last := f.last
	f.last = line
	if match := planned.FindStringSubmatch(line); match != nil {
		f.planned = match[1]
		return
	}
	if match := ended.FindStringSubmatch(line); match != nil {
		f.done++
		if strings.Contains(match[2], "FAILED") || strings.Contains(match[2], "PANICKED") || strings.Contains(match[2], "TIMEDOUT") {
			f.failed++
		}
		f.alone = ""
		f.say("")
		return
	}
	// Specs that run several at a time are named when they have ended, and one that runs
	// alone when it begins.
	switch isName := strings.HasPrefix(line, "[sig-"); {
	case isName && ended.MatchString(last):
		f.say(", last: " + shorten(line))
	case isName && rule.MatchString(last):
		f.alone = shorten(line)
		f.say(", now: " + f.alone)
	case f.alone != "":
		if match := by.FindStringSubmatch(line); match != nil {
			f.say(", now: " + f.alone + ": " + match[1])
		}
	}
}

func (f *follower) say(what string) {
	failed := ""
	if f.failed > 0 {
		failed = fmt.Sprintf(", %d failed", f.failed)
	}
	f.step.Now("%d of %s specs%s%s", f.done, f.planned, failed, what)
}

// tags are what the framework puts before and Ginkgo behind a spec's own words.
var tags = regexp.MustCompile(`\[[^\]]*\]\s*`)

func shorten(name string) string { return strings.TrimSpace(tags.ReplaceAllString(name, "")) }
