// Command podenv builds, runs and tests a Kubernetes with this branch's features.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"podenv.dev/hack/internal/interrupt"
	"podenv.dev/hack/internal/remedy"
	"podenv.dev/hack/internal/series"
)

func main() { os.Exit(Main()) }

// exitInterrupted is the exit status after Ctrl-C: 128 + SIGINT, as in shells.
const exitInterrupted = 130

// Main runs the command line and returns its exit status: 0, 1 for a failure,
// 2 for a wrong command line, 130 after Ctrl-C.
func Main() int {
	ctx, stop := interrupt.Context(context.Background())
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends the process at once
	err := newRoot(os.Stdout, os.Stderr).ExecuteContext(ctx)
	var usage *usageError
	var write *fs.PathError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &write) && write.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE):
		return 1 // podenv series | head
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "podenv: interrupted; the same command goes on from here")
		return exitInterrupted
	case errors.As(err, &usage), errors.Is(err, series.ErrUnknown):
		fmt.Fprintf(os.Stderr, "podenv: %v\n", err)
		return 2
	case errors.Is(err, errReported):
		return 1
	default:
		// A full disk or a port in use can end any step: Explain adds what to do.
		fmt.Fprintf(os.Stderr, "podenv: %v\n", remedy.Explain(err))
		return 1
	}
}

// errReported ends a verb that has already printed what is wrong.
var errReported = errors.New("already reported")

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
