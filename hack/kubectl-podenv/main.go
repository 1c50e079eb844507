// Command kubectl-podenv is what operators run on any cluster. In a folder of PATH it is
// `kubectl podenv`. It needs no checkout of podenv, and only reads.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

const (
	exitUsage       = 2
	exitFound       = 3   // an audit found something
	exitInterrupted = 130 // Ctrl-C: 128 + SIGINT, as in shells
)

// run runs the command line and returns its exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newRoot(os.Stdout, os.Stderr).ExecuteContext(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errReported):
		return 1
	case errors.Is(err, errFound):
		return exitFound
	}
	fmt.Fprintf(os.Stderr, "kubectl podenv: %v\n", err)
	if errors.As(err, &usage) {
		return exitUsage
	}
	return 1
}

var (
	// errReported ends a command that has already printed what is wrong.
	errReported = errors.New("already reported")
	// errFound ends an audit that found something. Its exit status differs from that of an
	// error and of a wrong command line.
	errFound = errors.New("found")
)

// usageError is an error in the command line.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// app has what all commands share.
type app struct{ out, errs io.Writer }

func newRoot(out, errs io.Writer) *cobra.Command {
	a := &app{out: out, errs: errs}
	root := &cobra.Command{
		Use:         "kubectl-podenv",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl podenv"},
		Short:       "Look at the environment of pods, in manifests and on any cluster",
		Long: `kubectl podenv answers an operator's questions about the environment of pods: which
objects use env files, special names or PodPresets, what a container's variables will
be, and what PodPresets inject. It only reads.`,
		Example: `  kubectl podenv audit
  kubectl podenv expand -f pod.yaml
  kubectl podenv preset -f pod.yaml -f presets.yaml`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("unknown command %q: see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(newAudit(a), newExpand(a), newPreset(a))
	return root
}

// noArgs is cobra.NoArgs with a usageError.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{fmt.Errorf("%s takes no arguments, got %q: see %[1]s --help", cmd.CommandPath(), args)}
	}
	return nil
}
