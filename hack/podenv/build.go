package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/debian"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/pipeline"
)

func newBuild(a *app) *cobra.Command {
	var tarball, verify bool
	cmd := &cobra.Command{
		Use:   "build [component]...",
		Short: "Compile Kubernetes' binaries, static and stamped, and pack their images",
		Long: `build compiles the tree as it is, your edits included. Without arguments it makes
all of ` + strings.Join(build.Components, ", ") + `.
The paths of the binaries are printed.

With --verify it builds the images that podenv publish sends, or those that you name,
builds them again in another folder with empty caches, and prints a tab-separated line
for each image: its name, and "equal" or the layer and the first file in it that differs.`,
		Example: `  podenv build
  podenv build kubelet
  podenv build --tarball            # also the server tarball, for stock
                                    # kind build node-image --type file
  podenv build --verify             # are two builds equal, to the byte?
  podenv build --verify node`,
		ValidArgs: build.Components,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, components []string) error {
			known := build.Components
			if verify {
				known = pipeline.PublishedNames
			}
			if err := checkWords(unknownComponent, known, components...); err != nil {
				return err
			}
			if verify {
				return a.verifyBuild(ctx, p, components)
			}
			all := len(components) == 0
			if tarball && !all {
				return &usageError{fmt.Errorf("--tarball needs every component: leave out %q", components)}
			}
			if all {
				components = build.Components
			}
			t, err := p.TreeAsItIs(ctx)
			if err != nil {
				return err
			}
			r, err := p.Binaries(ctx, t, pipeline.Host, components)
			if err != nil {
				return err
			}
			for _, c := range components {
				fmt.Fprintln(a.out, r.Binaries[c])
			}
			if !all {
				return nil
			}
			if err := p.Images(ctx, r); err != nil || !tarball {
				return err
			}
			step := p.Reporter.Step("server tarball")
			out, err := build.ServerTarball(ctx, r, step)
			if err := step.End(err); err != nil {
				return err
			}
			fmt.Fprintln(a.out, out)
			return nil
		}),
	}
	a.stockFlag(cmd)
	cmd.Flags().BoolVar(&tarball, "tarball", false, "also write the server tarball")
	cmd.Flags().BoolVar(&verify, "verify", false, "build the images again in another folder with empty caches, and compare")
	return cmd
}

// unknownComponent begins the error about a component or an image that podenv does not make.
const unknownComponent = "unknown component"

func newImage(a *app) *cobra.Command {
	var refresh bool
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build the kind node image, assembling and compiling what it needs",
		Long: `image goes from the release to a node image for plain kind, without a container
registry, and prints its name. docs/kind.yaml turns the gates on.`,
		Example: `  podenv image
  go tool kind create cluster --image "$(podenv image)" --config docs/kind.yaml`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if refresh {
				return a.refreshPackages(ctx, p)
			}
			r, err := p.NodeImage(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, r.Image)
			return nil
		}),
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

func newPush(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "push <component>...",
		Short: "Rebuild components from the tree as it is, edits included, and swap them on the nodes",
		Long: `push is the contributor's loop: edit the tree, push, see it run. It rebuilds the
components named, swaps them on every node that runs them, and waits until they
serve. If a build does not come up, push restores the one before. podenv node undo
restores the build of the node image.

Components: ` + strings.Join(build.Components, ", "),
		Example: `  $EDITOR trees/v1.33/pkg/kubelet/kubelet_pods.go
  podenv push kubelet`,
		ValidArgs: build.Components,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{fmt.Errorf("no component is named: choose from %s", strings.Join(build.Components, ", "))}
			}
			return checkWords(unknownComponent, build.Components, args...)
		},
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, components []string) error {
			t, err := p.TreeAsItIs(ctx)
			if err != nil {
				return err
			}
			c, err := a.cluster(ctx)
			if err != nil {
				return err
			}
			r, err := p.Binaries(ctx, t, pipeline.Host, components)
			if err != nil {
				return err
			}
			if err := p.Images(ctx, r); err != nil {
				return err
			}
			for _, component := range components {
				b, err := node.NewBuild(component, r.Binaries[component], r.Images[component], r.Version)
				if err != nil {
					return err
				}
				if err := node.Push(ctx, c, b, p.Reporter); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	a.nameFlag(cmd)
	a.stockFlag(cmd)
	return cmd
}
