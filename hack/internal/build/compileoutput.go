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

	"k8s.io/apimachinery/pkg/util/wait"

	"podenv.dev/hack/internal/progress"
)

// maxMessages is how many lines of messages a compileOutput keeps.
const maxMessages = 500

// importPath matches a line of `go build -v`: a package that is being compiled.
var importPath = regexp.MustCompile(`^[\w.~-]+(/[\w.~+-]+)*$`)

// compileOutput reads the output of `go build -v` and shows the progress in a step.
type compileOutput struct {
	bin        string // where the binaries are written
	components []string
	oldTimes   map[string]time.Time // modification times of the components in bin at the start
	step       *progress.Step

	mu       sync.Mutex
	messages []string // all lines except packages: mostly compiler errors
	compiled int
	current  string
	total    int      // packages that may need compiling; 0 if unknown
	mains    []string // components whose main package was compiled: they are linked next
}

func newCompileOutput(components []string, bin string, step *progress.Step) *compileOutput {
	o := &compileOutput{bin: bin, components: components, oldTimes: map[string]time.Time{}, step: step}
	for _, c := range components {
		o.oldTimes[c] = o.modTime(c)
	}
	return o
}

// report updates the step once a second until the returned function is called.
func (o *compileOutput) report() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		wait.Until(func() { o.step.Now("%s", o.status()) }, time.Second, done)
	})
	return func() { close(done); running.Wait() }
}

func (o *compileOutput) line(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !importPath.MatchString(line) {
		// The first line is the command, which package run writes.
		if len(o.messages) < maxMessages && !strings.HasPrefix(line, "+ ") {
			o.messages = append(o.messages, line)
		}
		return
	}
	o.compiled++
	o.current = line
	if name := path.Base(line); path.Base(path.Dir(line)) == "cmd" && slices.Contains(o.components, name) {
		o.mains = append(o.mains, name)
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

// status says what the go command is doing, as far as that is known.
func (o *compileOutput) status() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var linked, linking []string
	for _, c := range o.components {
		switch {
		case o.linked(c):
			linked = append(linked, c)
		case slices.Contains(o.mains, c):
			linking = append(linking, c)
		}
	}
	var text string
	switch {
	case o.compiled == 0 && len(linked) == 0:
		return "looking for what has changed"
	case o.compiled == 0:
		text = "linking"
	case o.total > 0:
		text = fmt.Sprintf("%d of up to %d packages", o.compiled, o.total)
	default:
		text = fmt.Sprintf("%d packages compiled", o.compiled)
	}
	switch {
	case len(linking) > 0:
		text += ", linking " + strings.Join(linking, ", ")
	case o.compiled > 0 && len(linked) == 0:
		text += ", now " + o.current
	}
	if len(linked) > 0 {
		text += fmt.Sprintf(" (%d of %d done)", len(linked), len(o.components))
	}
	return text
}

// linked reports whether component was linked, or found up to date, since the start: in both
// cases the go command sets the modification time.
func (o *compileOutput) linked(component string) bool {
	return !o.modTime(component).Equal(o.oldTimes[component])
}

func (o *compileOutput) modTime(component string) time.Time {
	info, err := os.Stat(filepath.Join(o.bin, component))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
