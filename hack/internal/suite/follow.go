package suite

import (
	"fmt"
	"regexp"
	"strings"

	"podenv.dev/hack/internal/progress"
)

var (
	specCount  = regexp.MustCompile(`^Will run (\d+) of \d+ specs`)
	specResult = regexp.MustCompile(`^(•|S|P)( \[[A-Z ]+\])? \[[0-9.]+ seconds\]`)
	// specStep matches a step of a spec; its start time is not in the group.
	specStep = regexp.MustCompile(`^\s+STEP: (.*?)( @ \S+ \S+)?$`)
	// separator is the line between specs.
	separator = regexp.MustCompile(`^-{30}$`)
	// labels match what the framework and Ginkgo add to the text of a spec.
	labels = regexp.MustCompile(`\[[^\]]*\]\s*`)
)

// follower reads Ginkgo's verbose output line by line, and shows the progress of the specs in
// step.
type follower struct {
	step    *progress.Step
	total   string
	done    int
	failed  int
	last    string // the previous line
	running string // the spec that runs, if specs run one at a time
}

// Follow returns a function that reads such output, and shows its progress in step.
func Follow(step *progress.Step) func(line string) { return (&follower{step: step}).line }

func (f *follower) line(line string) {
	last := f.last
	f.last = line
	if match := specCount.FindStringSubmatch(line); match != nil {
		f.total = match[1]
		return
	}
	if match := specResult.FindStringSubmatch(line); match != nil {
		f.done++
		if strings.Contains(match[2], "FAILED") || strings.Contains(match[2], "PANICKED") || strings.Contains(match[2], "TIMEDOUT") {
			f.failed++
		}
		f.running = ""
		f.show("")
		return
	}
	// Ginkgo prints the name of a spec after its result if specs run in parallel, and when it
	// starts if they do not.
	switch isName := strings.HasPrefix(line, "[sig-"); {
	case isName && specResult.MatchString(last):
		f.show(", last: " + shortName(line))
	case isName && separator.MatchString(last):
		f.running = shortName(line)
		f.show(", now: " + f.running)
	case f.running != "":
		if match := specStep.FindStringSubmatch(line); match != nil {
			f.show(", now: " + f.running + ": " + match[1])
		}
	}
}

func (f *follower) show(what string) {
	failed := ""
	if f.failed > 0 {
		failed = fmt.Sprintf(", %d failed", f.failed)
	}
	f.step.Now("%d of %s specs%s%s", f.done, f.total, failed, what)
}

func shortName(name string) string { return strings.TrimSpace(labels.ReplaceAllString(name, "")) }
