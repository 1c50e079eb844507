package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/source"
)

func newBuild(a *app) *cobra.Command {
	var tarball, verify bool
	cmd := &cobra.Command{
		Use:   "build [component]...",
		Short: "Compile Kubernetes' binaries, static and stamped, and pack their images",
		Long: `build compiles the tree as it is, your edits included. Without arguments it makes
all of ` + strings.Join(build.Components, ", ") + `.
The paths of the binaries are printed.

With --verify it builds what podenv publish sends, builds it again in another folder
with empty caches, and prints a tab-separated line for each image: its name, and
"equal" or the layer and the first file in it that differs.`,
		Example: `  podenv build
  podenv build kubelet
  podenv build --tarball            # also the server tarball, for stock
                                    # kind build node-image --type file
  podenv build --verify             # are two builds equal, to the byte?`,
		ValidArgs: build.Components,
		Args:      componentArgs,
		RunE: func(cmd *cobra.Command, components []string) error {
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			all := len(components) == 0
			if all {
				components = build.Components
			}
			if tarball && !all {
				return &usageError{fmt.Errorf("--tarball needs every component: leave out %q", components)}
			}
			if verify {
				if all {
					components = nil
				}
				if err := checkComponents(build.ImageComponents, components...); err != nil {
					return err
				}
				return a.verifyBuild(cmd.Context(), p, components)
			}
			t, err := source.Open(cmd.Context(), a.layout, p.Series, a.stock, p.Reporter)
			if err != nil {
				return err
			}
			r, err := p.Binaries(cmd.Context(), t, components)
			if err != nil {
				return err
			}
			for _, c := range components {
				fmt.Fprintln(a.out, r.Binaries[c])
			}
			if !all {
				return nil
			}
			if err := p.Images(cmd.Context(), r); err != nil || !tarball {
				return err
			}
			step := p.Reporter.Step("server tarball")
			out, err := build.ServerTarball(cmd.Context(), r, step)
			if err := step.End(err); err != nil {
				return err
			}
			fmt.Fprintln(a.out, out)
			return nil
		},
	}
	a.stockFlag(cmd)
	cmd.Flags().BoolVar(&tarball, "tarball", false, "also write the server tarball")
	cmd.Flags().BoolVar(&verify, "verify", false, "build the images again in another folder with empty caches, and compare")
	return cmd
}

// componentArgs accepts only names of components.
func componentArgs(_ *cobra.Command, args []string) error {
	return checkComponents(build.Components, args...)
}

func checkComponents(known []string, names ...string) error {
	for _, name := range names {
		if !slices.Contains(known, name) {
			return &usageError{fmt.Errorf("unknown component %q: choose from %s", name, strings.Join(known, ", "))}
		}
	}
	return nil
}

func newImage(a *app) *cobra.Command {
	var refresh bool
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build the kind node image, assembling and compiling what it needs",
		Long: `image goes from the release to a node image that plain kind create cluster takes,
without a container registry. The image's name is printed.`,
		Example: `  podenv image
  kind create cluster --image "$(podenv image)"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			if refresh {
				return a.refreshPackages(cmd.Context(), p)
			}
			r, err := p.NodeImage(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, r.Image)
			return nil
		},
	}
	a.stockFlag(cmd)
	cmd.Flags().BoolVar(&refresh, "refresh-packages", false, "pin the Debian packages at the versions that the mirror has now")
	return cmd
}

// refreshPackages pins the Debian packages of every image at their current versions.
func (a *app) refreshPackages(ctx context.Context, p *pipeline.Pipeline) error {
	if err := p.Packages(ctx); err != nil {
		return err
	}
	step := p.Reporter.Step("Debian packages")
	changed, err := debian.Nodes.RefreshPackages(ctx, a.layout, step)
	if err == nil {
		var more []string
		more, err = debian.Specs.RefreshPackages(ctx, a.layout, step)
		changed = append(changed, more...)
	}
	if err := step.End(err); err != nil {
		return err
	}
	for _, what := range changed {
		fmt.Fprintln(a.out, what)
	}
	return nil
}
