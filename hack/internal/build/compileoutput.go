package build

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"podenv.dev/hack/internal/progress"
)

// maxMessages is how many lines of messages a compileOutput keeps.
const maxMessages = 500

// importPath matches a line of `go build -v`: a package that is being compiled.
var importPath = regexp.MustCompile(`^[\w.~-]+(/[\w.~+-]+)*$`)

// compileOutput reads the output of `go build -v` and shows the progress in a step.
type compileOutput struct {
	step *progress.Step

	mu       sync.Mutex
	messages []string // all lines except packages: mostly compiler errors
	compiled int
	total    int // packages that may need compiling; 0 if unknown
}

func (o *compileOutput) line(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if importPath.MatchString(line) {
		o.compiled++
		o.step.Now("%s, now %s", o.status(), line) // a main package is compiled last, and then linked
		return
	}
	// The first line is the command, which package run writes.
	if len(o.messages) < maxMessages && !strings.HasPrefix(line, "+ ") {
		o.messages = append(o.messages, line)
	}
}

func (o *compileOutput) setTotal(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total = n
}

// lines returns the messages, without the packages.
func (o *compileOutput) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.messages)
}

func (o *compileOutput) status() string {
	if o.total == 0 {
		return fmt.Sprintf("%d packages compiled", o.compiled)
	}
	return fmt.Sprintf("%d of up to %d packages", o.compiled, o.total)
}
