package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/packages"
	"podenv.dev/hack/internal/pipeline"
)

func newPackages(a *app) *cobra.Command {
	var to string
	var platforms []string
	cmd := &cobra.Command{
		Use:   "packages",
		Short: "Make Debian and RPM packages of kubelet, kubeadm and kubectl",
		Long: `packages compiles the tree as it is, your edits included, and makes packages of ` + strings.Join(packages.Components, ", ") + `
with the units of systemd, for nodes that kubeadm sets up. They replace those of pkgs.k8s.io: the
version 1.33.13+podenv.25-1 follows 1.33.13-1.1 and precedes 1.33.14-1.1.

The paths of the packages are printed; the file ` + packages.Sums + ` beside them has their digests.
Equal programs give equal packages.`,
		Example: `  podenv packages
  podenv packages --platforms linux/amd64,linux/arm64 --to dist
  podenv packages --stock           # the release without patches
  apt-get install $(podenv packages | grep deb$)`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPlatforms(platforms); err != nil {
				return err
			}
			ctx := cmd.Context()
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			t, err := p.TreeAsItIs(ctx)
			if err != nil {
				return err
			}
			_, date, err := t.Release(ctx)
			if err != nil {
				return err
			}
			var builds []*build.Result
			for _, platform := range platforms {
				b, err := p.BinariesFor(ctx, t, platform, packages.Components)
				if err != nil {
					return err
				}
				builds = append(builds, b)
			}
			if to == "" {
				to = filepath.Join(a.layout.Build(t.Name()), "packages")
				if err := os.RemoveAll(to); err != nil { // those of another version
					return err
				}
			}
			step := p.Reporter.Step("packages")
			paths, err := packages.Build(ctx, a.layout, builds, date, to, step)
			if err := step.End(err); err != nil {
				return err
			}
			for _, path := range paths {
				fmt.Fprintln(a.out, path)
			}
			return nil
		},
	}
	a.stockFlag(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the folder to write to (default _output/build/<series>/packages)")
	cmd.Flags().StringSliceVar(&platforms, "platforms", []string{"linux/" + runtime.GOARCH}, "which platforms to make packages for")
	return cmd
}

// checkPlatforms refuses a value of --platforms that podenv does not build for.
func checkPlatforms(platforms []string) error {
	if i := slices.IndexFunc(platforms, func(p string) bool { return !slices.Contains(pipeline.PublishedPlatforms, p) }); i >= 0 {
		return &usageError{fmt.Errorf("--platforms %s: choose from %s", platforms[i], strings.Join(pipeline.PublishedPlatforms, ", "))}
	}
	return nil
}
