package main

import (
	"context"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/engine"
)

func newDoctor(a *app) *cobra.Command {
	var format *string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the host: engine, privileged containers, capabilities, cgroups, disk, tools",
		Long: `doctor examines what a run needs and says, for each finding, how to fix it. It
changes nothing and uses no network. Exit status: 0 when a run can work, 1 when
something must be fixed first.`,
		Example: `  podenv doctor
  podenv doctor --output tsv | awk -F '\t' '$2 == "fail"'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, err := rowWriter(*format, doctor.WriteTable, doctor.WriteTSV)
			if err != nil {
				return err
			}
			findings := doctor.Examine(cmd.Context(), a.layout)
			if err := write(a.out, findings); err != nil {
				return err
			}
			if doctor.Failed(findings) {
				return errReported
			}
			return nil
		},
	}
	format = outputFlag(cmd)
	return cmd
}

// checkInotify raises the kernel's inotify limits where it may, and refuses a new cluster if they
// leave too few instances for it, before anything is built. An existing cluster needs no more of
// them, so it is not refused.
func (a *app) checkInotify(ctx context.Context, want cluster.Config) error {
	doctor.RaiseInotify()
	tooFew := doctor.InotifyFor(max(1, want.ControlPlanes), want.Workers)
	if tooFew == nil {
		return nil
	}
	if e, err := engine.Find(ctx); err == nil {
		if _, err := cluster.Find(ctx, a.layout, e, want.Name); err == nil {
			return nil
		}
	}
	return tooFew
}
