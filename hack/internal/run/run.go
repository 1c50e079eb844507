// Package run starts external commands. Its errors contain the command line, quoted for
// a shell, and the last lines of its output.
package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// gracePeriod is the time between SIGTERM and SIGKILL.
const gracePeriod = 10 * time.Second

// The error of a failed command shows the last tailLines of its output, read from the last tailBytes.
const (
	tailLines = 15
	tailBytes = 64 << 10
)

// LessGC makes compilers and the like collect garbage rarely: a build takes a sixth less processor time.
var LessGC = []string{"GOGC=800", "GOMEMLIMIT=3GiB"}

// Cmd is a command to be run. Its methods return it, so that calls chain.
type Cmd struct {
	ctx context.Context // exec.Cmd does not export its context
	cmd *exec.Cmd
	log io.Writer
}

// Command prepares name with args. When ctx ends, the command's whole process
// group gets SIGTERM and, ten seconds later, the command is killed. Its error then
// wraps ctx's error. The go command gets LessGC, unless the user has set GOGC.
func Command(ctx context.Context, name string, args ...string) *Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = gracePeriod
	if name == "go" && os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), LessGC...)
	}
	return &Cmd{ctx: ctx, cmd: cmd}
}

// Interruptible lets the command clean up when its context ends: the process group gets
// SIGINT instead of SIGTERM, and the command is killed after gracePeriod.
func (c *Cmd) Interruptible(gracePeriod time.Duration) *Cmd {
	c.cmd.Cancel = func() error { return syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT) }
	c.cmd.WaitDelay = gracePeriod
	return c
}

// Dir sets the working directory.
func (c *Cmd) Dir(dir string) *Cmd { c.cmd.Dir = dir; return c }

// Env adds KEY=VALUE pairs to the inherited environment; later ones win.
func (c *Cmd) Env(pairs ...string) *Cmd {
	if c.cmd.Env == nil {
		c.cmd.Env = os.Environ()
	}
	c.cmd.Env = append(c.cmd.Env, pairs...)
	return c
}

// Stdin sets the command's standard input.
func (c *Cmd) Stdin(r io.Reader) *Cmd { c.cmd.Stdin = r; return c }

// Log copies what the command prints, both streams, to w.
func (c *Cmd) Log(w io.Writer) *Cmd { c.log = w; return c }

// Run runs the command to its end. A failure is an *Error.
func (c *Cmd) Run() error {
	_, err := c.run(false)
	return err
}

// Output runs the command and returns its standard output without the trailing newline. A failure is an *Error.
func (c *Cmd) Output() (string, error) {
	out, err := c.run(true)
	return strings.TrimRight(out, "\n"), err
}

func (c *Cmd) run(capture bool) (string, error) {
	var stdout bytes.Buffer
	var last tail
	log := &logged{Writer: c.log}
	c.cmd.Stderr = &last
	if c.log != nil {
		fmt.Fprintf(log, "+ %s\n", c)
		c.cmd.Stderr = io.MultiWriter(&last, log)
	}
	c.cmd.Stdout = c.cmd.Stderr
	if capture {
		c.cmd.Stdout = &stdout
		if c.log != nil {
			c.cmd.Stdout = io.MultiWriter(&stdout, log)
		}
	}
	err := c.cmd.Run()
	if logErr := log.failed.Load(); logErr != nil { // SIGPIPE has ended the command
		err = *logErr
	}
	if err == nil {
		return stdout.String(), nil
	}
	// The error of os/exec names only the signal or, if the program caught it, the exit status.
	if ctxErr := c.ctx.Err(); ctxErr != nil && !errors.Is(err, ctxErr) {
		err = fmt.Errorf("%w: %w", ctxErr, err)
	}
	if capture && len(last) == 0 {
		last = stdout.Bytes()
	}
	return stdout.String(), &Error{Line: c.String(), Dir: c.cmd.Dir, Tail: last.String(), Err: err}
}

// logged remembers why a log could not be written: its disk may be full.
type logged struct {
	io.Writer
	failed atomic.Pointer[error]
}

func (l *logged) Write(p []byte) (int, error) {
	n, err := l.Writer.Write(p)
	if err != nil {
		l.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// String is the command line, quoted for a POSIX shell.
func (c *Cmd) String() string {
	words := make([]string, len(c.cmd.Args))
	for i, arg := range c.cmd.Args {
		words[i] = Quote(arg)
	}
	return strings.Join(words, " ")
}

// Quote quotes word for a POSIX shell, if it needs quotes.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+%"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Error says which command failed, and how.
type Error struct {
	Line string // the command line, quoted for a shell
	Dir  string // its working directory; empty for the current one
	Tail string // the last lines of its output
	Err  error  // the error of os/exec; it wraps the context's error if the context ended
}

func (e *Error) Error() string {
	const maxBytes = 300 // of the command line: the output matters more, and a log has all of it
	line := e.Line
	if len(line) > maxBytes {
		line = strings.ToValidUTF8(line[:maxBytes], "") + "…"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", line, e.Err)
	if e.Dir != "" {
		fmt.Fprintf(&b, " (in %s)", e.Dir)
	}
	if e.Tail != "" {
		b.WriteString("\n  " + strings.ReplaceAll(e.Tail, "\n", "\n  "))
	}
	return b.String()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// tail keeps at least the last tailBytes written to it.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	if len(*t) > 2*tailBytes {
		*t = bytes.Clone((*t)[len(*t)-tailBytes:])
	}
	return len(p), nil
}

func (t tail) String() string {
	lines := strings.Split(strings.TrimRight(string(t), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

// Lines returns a writer that calls each for every complete line, without the newline.
func Lines(each func(line string)) io.Writer { return &lineWriter{each: each} }

type lineWriter struct {
	each    func(string)
	partial []byte // an incomplete last line
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.partial = append(w.partial, p...)
	for {
		line, rest, complete := bytes.Cut(w.partial, []byte{'\n'})
		if !complete {
			return len(p), nil
		}
		w.each(string(line))
		w.partial = rest
	}
}
