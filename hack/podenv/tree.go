package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/source"
)

func newTree(a *app) *cobra.Command {
	var discard, status bool
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Assemble the patched source of the series as a git repository",
		Long: `tree puts the release's modules and the patches with their new files together, laid
out as kubernetes/kubernetes is, and runs the generators. The tree is a git
repository: one commit for the release, one per patch, one for generated code.
Its path is printed.

podenv never overwrites a tree that you have edited: if its patches have changed
too, it says what is edited and how to keep or drop it.`,
		Example: `  podenv tree
  git -C "$(podenv tree)" log --oneline
  podenv tree --stock               # the release without patches
  podenv tree --status              # its commits and edits
  podenv tree --discard             # drop edits and reassemble`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.pipeline()
			if err != nil {
				return err
			}
			if status {
				return a.treeStatus(cmd.Context(), p)
			}
			if err := p.Packages(cmd.Context()); err != nil {
				return err
			}
			t, err := p.Tree(cmd.Context(), source.Options{Discard: discard, KeepEdits: true})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, t.Dir)
			return nil
		},
	}
	a.stockFlag(cmd)
	cmd.Flags().BoolVar(&discard, "discard", false, "drop the edits in the tree, and an unfinished git am")
	cmd.Flags().BoolVar(&status, "status", false, "only print the tree's commits and edits")
	return cmd
}

// treeStatus prints the tree's state, commits and edits, one tab-separated line each: what it
// is, its id or path, and its subject.
func (a *app) treeStatus(ctx context.Context, p *pipeline.Pipeline) error {
	s, err := source.Describe(ctx, a.layout, p.Series, a.stock)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "tree\t%s\n", s.Dir)
	state := "up to date"
	if !s.UpToDate {
		state = "older than its inputs: podenv tree brings it up to date"
	}
	fmt.Fprintf(a.out, "state\t%s\nrelease\t%s\n", state, s.Release)
	for _, c := range s.Commits {
		kind := c.Kind
		if !c.InSeries {
			kind = "yours"
		}
		fmt.Fprintf(a.out, "%s\t%s\t%s\n", kind, c.ID[:12], c.Subject)
	}
	for _, path := range s.Dirty {
		fmt.Fprintf(a.out, "edited\t%s\n", path)
	}
	for _, ref := range s.Saved {
		fmt.Fprintf(a.out, "saved\t%s\n", ref)
	}
	return s.Stopped
}
