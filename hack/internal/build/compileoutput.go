package build

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// maxMessages is how many lines of messages a compileOutput keeps.
const maxMessages = 500

// importPath matches a line of `go build -v`: a package that is being compiled.
var importPath = regexp.MustCompile(`^[\w.~-]+(/[\w.~+-]+)*$`)

// compileOutput reads the output of `go build -v` and shows in a step how far it is.
type compileOutput struct {
	components []string
	step       *progress.Step

	mu       sync.Mutex
	partial  []byte
	messages []string // all but the packages: compiler errors, mostly
	compiled int
	current  string
	linking  []string // components whose main package was compiled: they are linked next
}

// report updates the step once a second until the returned function is called.
func (o *compileOutput) report() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			o.step.Now("%s", o.now())
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// Write takes output of the go command.
func (o *compileOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = run.EachLine(append(o.partial, p...), o.line)
	return len(p), nil
}

func (o *compileOutput) line(line string) {
	if !importPath.MatchString(line) {
		// The first line is run's own: the command.
		if len(o.messages) < maxMessages && !strings.HasPrefix(line, "+ ") {
			o.messages = append(o.messages, line)
		}
		return
	}
	o.compiled++
	o.current = line
	if name := path.Base(line); path.Base(path.Dir(line)) == "cmd" && slices.Contains(o.components, name) {
		o.linking = append(o.linking, name)
	}
}

// lines returns the messages, without the packages.
func (o *compileOutput) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.messages)
}

// now says what the go command is doing, as far as it shows. It prints nothing of what it
// links without a change of the main package.
func (o *compileOutput) now() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.compiled == 0:
		return "looking for what has changed, and linking"
	case len(o.linking) > 0:
		return fmt.Sprintf("%d packages compiled, linking %s", o.compiled, strings.Join(o.linking, ", "))
	}
	return fmt.Sprintf("%d packages compiled, now %s", o.compiled, o.current)
}
