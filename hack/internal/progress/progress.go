// Package progress shows the steps of a long operation, with one log file per step. On a terminal, each running
// step has a line that is redrawn; elsewhere, a step prints a line when it starts and one when it ends.
package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

const (
	redrawInterval    = 200 * time.Millisecond // on a terminal
	heartbeatInterval = 30 * time.Second       // elsewhere, so that CI sees that a step still runs
)

// Reporter shows steps. Several steps may run at the same time.
type Reporter struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool
	width  int
	logs   string
	active []*Step
	drawn  int // how many live lines are on the screen, below the finished ones
	stop   chan struct{}
	// Timings is called with each finished step, if set.
	Timings func(name string, took time.Duration, cached bool, err error)
}

// New returns a Reporter that writes to w and keeps the steps' logs in the folder logs. With
// live, w is a terminal of width columns, and the lines of running steps are redrawn.
func New(w io.Writer, live bool, width int, logs string) *Reporter {
	if width <= 0 {
		width = 80
	}
	return &Reporter{w: w, live: live, width: width, logs: logs}
}

// To is New for a w that may be a terminal. With plain, it is used like any other file.
func To(w io.Writer, plain bool, logs string) *Reporter {
	f, isFile := w.(*os.File)
	if plain || !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return New(w, false, 0, logs)
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return New(w, true, width, logs)
}

// Step is one step of a long operation. The methods of a nil Step do nothing, so that callers need no Reporter.
type Step struct {
	r           *Reporter
	name        string
	start       time.Time
	lastPrinted time.Time
	now         string
	log         *os.File
	cached      string
	done        bool
}

// Step starts a step. Its log is logs/<name>.log, with spaces, slashes and colons as dashes.
// While another step, perhaps of another process, uses that file, it is <name>.2.log and so on.
func (r *Reporter) Step(name string) *Step {
	if r == nil {
		return nil
	}
	s := &Step{r: r, name: name, start: time.Now(), lastPrinted: time.Now()}
	if err := os.MkdirAll(r.logs, 0o755); err == nil {
		// Without a log the step still runs. If the disk is full, the step reports that.
		s.log = createLog(filepath.Join(r.logs, fileName.Replace(name)))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = append(r.active, s)
	if r.live {
		r.draw()
	} else {
		fmt.Fprintf(r.w, "  ...   %s\n", s.name)
	}
	if r.stop == nil {
		r.stop = make(chan struct{})
		go r.tick(r.stop)
	}
	return s
}

// maxLogs limits how many steps with the same name have logs at the same time.
const maxLogs = 100

// createLog creates base.log or, while that is in use, base.2.log and so on. It returns nil if it cannot. The
// flock belongs to the open file: it lasts until the step, and every command that inherited the file, ends.
func createLog(base string) *os.File {
	path := base + ".log"
	for n := 2; n <= maxLogs; n++ {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && f.Truncate(0) == nil {
			return f
		}
		f.Close()
		path = fmt.Sprintf("%s.%d.log", base, n)
	}
	return nil
}

// fileName turns the name of a step into a file name.
var fileName = strings.NewReplacer(" ", "-", "/", "-", ":", "-")

// Now sets what the line of the step shows it is doing.
func (s *Step) Now(format string, args ...any) {
	if s == nil {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.now = fmt.Sprintf(format, args...)
	if s.log != nil {
		fmt.Fprintf(s.log, "# %s\n", s.now)
	}
}

// Cached marks the step as one whose result already exists, which what describes.
func (s *Step) Cached(what string) {
	if s == nil {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.cached = what
}

// Log is the writer for the step's full output.
func (s *Step) Log() io.Writer {
	if s == nil || s.log == nil {
		return io.Discard
	}
	return s.log
}

// LogPath is the path of the log file, or empty if there is none.
func (s *Step) LogPath() string {
	if s == nil || s.log == nil {
		return ""
	}
	return s.log.Name()
}

// End ends the step and returns err. If err is not nil, the step failed, and the returned
// error also names the step's log. A second call only returns err.
func (s *Step) End(err error) error {
	if s == nil {
		return err
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if s.done {
		return err
	}
	s.done = true
	took := time.Since(s.start)
	if s.log != nil {
		if err != nil {
			fmt.Fprintf(s.log, "# failed: %v\n", err)
		}
		s.log.Close()
	}
	s.r.finish(s, took, err)
	if s.r.Timings != nil {
		s.r.Timings(s.name, took, s.cached != "", err)
	}
	if err != nil && s.log != nil {
		err = fmt.Errorf("%w\n  full log: %s", err, s.log.Name())
	}
	return err
}

func (r *Reporter) finish(s *Step, took time.Duration, err error) {
	r.active = slices.DeleteFunc(r.active, func(other *Step) bool { return other == s })
	mark, note := "ok", elapsed(took)
	switch {
	case errors.Is(err, context.Canceled):
		mark = "stop"
	case err != nil:
		mark = "FAIL"
	case s.cached != "":
		mark, note = "same", s.cached
	}
	r.clear()
	fmt.Fprintf(r.w, "  %-4s  %s (%s)\n", mark, s.name, note)
	if r.live {
		r.draw()
	}
	if len(r.active) == 0 && r.stop != nil {
		close(r.stop)
		r.stop = nil
	}
}

// Print prints a permanent line above the running steps.
func (r *Reporter) Print(line string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clear()
	fmt.Fprintln(r.w, line)
	if r.live {
		r.draw()
	}
}

func (r *Reporter) tick(stop <-chan struct{}) {
	t := time.NewTicker(redrawInterval)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			r.mu.Lock()
			if r.live {
				r.draw()
			} else {
				r.printHeartbeats()
			}
			r.mu.Unlock()
		}
	}
}

// printHeartbeats prints a line for each step that has printed none for heartbeatInterval.
func (r *Reporter) printHeartbeats() {
	for _, s := range r.active {
		if time.Since(s.lastPrinted) < heartbeatInterval {
			continue
		}
		s.lastPrinted = time.Now()
		fmt.Fprintf(r.w, "  ...   %s (%s)  %s\n", s.name, elapsed(time.Since(s.start)), s.now)
	}
}

// clear removes the live lines from the screen.
func (r *Reporter) clear() {
	if r.drawn > 0 {
		fmt.Fprintf(r.w, "\x1b[%dA\x1b[J", r.drawn)
		r.drawn = 0
	}
}

func (r *Reporter) draw() {
	r.clear()
	for _, s := range r.active {
		line := fmt.Sprintf("  ...   %s (%s)", s.name, elapsed(time.Since(s.start)))
		if s.now != "" {
			line += "  " + s.now
		}
		if runes := []rune(line); len(runes) > r.width-1 {
			line = string(runes[:r.width-2]) + "…"
		}
		fmt.Fprintln(r.w, line)
		r.drawn++
	}
}

func elapsed(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
