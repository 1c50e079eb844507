package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/source"
)

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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &usageError{fmt.Errorf("no component is named: choose from %s", strings.Join(build.Components, ", "))}
			}
			return componentArgs(cmd, args)
		},
		RunE: func(cmd *cobra.Command, components []string) error {
			return a.push(cmd, components)
		},
	}
	a.nameFlag(cmd)
	a.stockFlag(cmd)
	return cmd
}

func (a *app) push(cmd *cobra.Command, components []string) error {
	ctx := cmd.Context()
	p, err := a.pipeline()
	if err != nil {
		return err
	}
	t, err := source.Open(ctx, a.layout, p.Series, a.stock, p.Reporter)
	if err != nil {
		return err
	}
	c, err := a.cluster(ctx)
	if err != nil {
		return err
	}
	r, err := p.Binaries(ctx, t, components)
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
}
