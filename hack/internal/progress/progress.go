// Package progress shows what long work is doing: one line a step, which lives
// while the step runs on a terminal and is printed plainly elsewhere, and one log
// file a step.
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

// redraw is how often live lines are drawn again.
const redraw = 200 * time.Millisecond

// heartbeat is how often a plain step says that it is still at work.
const heartbeat = 30 * time.Second

// Reporter shows steps, several of which may run at once.
type Reporter struct {
	mu     sync.Mutex
	w      io.Writer
	live   bool
	width  int
	logs   string
	active []*Step
	drawn  int // live lines on the screen below the finished ones
	stop   chan struct{}
	// Timings is called with each finished step, if set.
	Timings func(name string, took time.Duration, cached bool, err error)
}

// New returns a Reporter that writes to w, with lines that live if live is set
// (w is a terminal of width columns), and keeps the steps' logs in the folder logs.
func New(w io.Writer, live bool, width int, logs string) *Reporter {
	if width <= 0 {
		width = 80
	}
	return &Reporter{w: w, live: live, width: width, logs: logs}
}

// To returns a Reporter that writes to w, with lines that live if w is a terminal and plain is
// not set, and keeps the steps' logs in the folder logs.
func To(w io.Writer, plain bool, logs string) *Reporter {
	f, isFile := w.(*os.File)
	if plain || !isFile || os.Getenv("TERM") == "dumb" || !term.IsTerminal(int(f.Fd())) {
		return New(w, false, 0, logs)
	}
	width, _, _ := term.GetSize(int(f.Fd()))
	return New(w, true, width, logs)
}

// Step is one step of long work. The methods of a nil Step do nothing, so that a
// caller without a Reporter needs no other code.
type Step struct {
	r      *Reporter
	name   string
	start  time.Time
	said   time.Time
	now    string
	log    *os.File
	cached string
	done   bool
}

// Step starts a step. Its log is logs/<name>.log, with spaces and slashes as dashes, or
// <name>.2.log and so on while another step, perhaps of another process, writes there.
func (r *Reporter) Step(name string) *Step {
	if r == nil {
		return nil
	}
	s := &Step{r: r, name: name, start: time.Now(), said: time.Now()}
	if err := os.MkdirAll(r.logs, 0o755); err == nil {
		// Without a log the step still runs: a full disk is for the step to report.
		s.log = createLog(filepath.Join(r.logs, slug.Replace(name)))
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

// mostLogs is how many steps of one name may run at once and have logs.
const mostLogs = 100

// createLog creates the first of the log files called base that nobody writes to; nil if
// it cannot. The lock is the open file's: it lasts as long as the step, or a command that
// writes to its log.
func createLog(base string) *os.File {
	path := base + ".log"
	for n := 2; n <= mostLogs; n++ {
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

// slug makes a file name of a step's name.
var slug = strings.NewReplacer(" ", "-", "/", "-", ":", "-")

// Now says what the step is doing at this moment.
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

// Cached says that the step found its result already made.
func (s *Step) Cached(what string) {
	if s == nil {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.cached = what
}

// Log is where the step's full output goes.
func (s *Step) Log() io.Writer {
	if s == nil || s.log == nil {
		return io.Discard
	}
	return s.log
}

// LogPath is the file behind Log, or empty.
func (s *Step) LogPath() string {
	if s == nil || s.log == nil {
		return ""
	}
	return s.log.Name()
}

// End ends the step and returns err, which says whether it failed; a failure gets
// the path of the step's full log added. End is called once; later calls only
// return err.
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

// finish takes s out of the active steps and prints its last line.
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

// Print prints a line that stays, above the steps that run.
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
	t := time.NewTicker(redraw)
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
				r.beat()
			}
			r.mu.Unlock()
		}
	}
}

// beat lets plain steps that have been silent for long say that they are at work.
func (r *Reporter) beat() {
	for _, s := range r.active {
		if time.Since(s.said) < heartbeat {
			continue
		}
		s.said = time.Now()
		fmt.Fprintf(r.w, "  ...   %s (%s)  %s\n", s.name, elapsed(time.Since(s.start)), s.now)
	}
}

// clear takes the live lines off the screen.
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
