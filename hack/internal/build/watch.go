package build

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// kept is how many lines of the Go tool's messages a watch remembers.
const kept = 500

// importPath matches a line of `go build -v`: a package that is being compiled.
var importPath = regexp.MustCompile(`^[\w.~-]+(/[\w.~+-]+)*$`)

// watch reads the output of `go build -v` and tells a step what it means.
type watch struct {
	stage      string
	components []string
	before     map[string]time.Time // when each component in the stage was written
	step       *progress.Step

	mu       sync.Mutex
	partial  []byte
	messages []string // all but the packages: compiler errors, mostly
	compiled int
	current  string
	of       int      // packages that may need compiling; 0 if unknown
	mains    []string // components whose main package was compiled: they are linked next
}

func newWatch(components []string, stage string, step *progress.Step) *watch {
	w := &watch{stage: stage, components: components, before: map[string]time.Time{}, step: step}
	for _, c := range components {
		w.before[c] = w.written(c)
	}
	return w
}

// every updates the step once a second until the returned function is called.
func (w *watch) every() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		w.step.Now("%s", w.now())
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				w.step.Now("%s", w.now())
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// Write takes output of the Go tool.
func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partial = run.EachLine(append(w.partial, p...), w.line)
	return len(p), nil
}

func (w *watch) line(line string) {
	if !importPath.MatchString(line) {
		// The first line is run's own: the command.
		if len(w.messages) < kept && !strings.HasPrefix(line, "+ ") {
			w.messages = append(w.messages, line)
		}
		return
	}
	w.compiled++
	w.current = line
	if name := path.Base(line); path.Base(path.Dir(line)) == "cmd" && slices.Contains(w.components, name) {
		w.mains = append(w.mains, name)
	}
}

func (w *watch) total(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of = n
}

// said returns the Go tool's messages.
func (w *watch) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.messages)
}

// now says what the Go tool is doing, as far as it shows.
func (w *watch) now() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var linked, linking []string
	for _, c := range w.components {
		switch {
		case w.linked(c):
			linked = append(linked, c)
		case slices.Contains(w.mains, c):
			linking = append(linking, c)
		}
	}
	var text string
	switch {
	case w.compiled == 0 && len(linked) == 0:
		return "looking for what has changed"
	case w.compiled == 0:
		text = "linking"
	case w.of > 0:
		text = fmt.Sprintf("%d of up to %d packages", w.compiled, w.of)
	default:
		text = fmt.Sprintf("%d packages compiled", w.compiled)
	}
	switch {
	case len(linking) > 0:
		text += ", linking " + strings.Join(linking, ", ")
	case w.compiled > 0 && len(linked) == 0:
		text += ", now " + w.current
	}
	if len(linked) > 0 {
		text += fmt.Sprintf(" (%d of %d done)", len(linked), len(w.components))
	}
	return text
}

// linked says whether component was linked, or found up to date, since the watch began:
// the Go tool dates both anew.
func (w *watch) linked(component string) bool {
	return !w.written(component).Equal(w.before[component])
}

func (w *watch) written(component string) time.Time {
	info, err := os.Stat(filepath.Join(w.stage, component))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
