package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
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
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			if status {
				return a.treeStatus(ctx, p)
			}
			t, err := p.Tree(ctx, source.Options{Discard: discard, KeepEdits: true})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.out, t.Dir)
			return nil
		}),
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

func newPatches(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "patches",
		Short: "Write the tree's commits back to patches/<series>",
		Long: `patches writes the tree's commits to the files of the series: the commits of the
series, in the order and form that a rebase left them, and those that you added
on top. Generated code stays out. New files have one place for all series: those
of packages of our own are in pkg/ and staging/, those that join a package of the
release in patches/new, or in patches/<series>/new if the series has its own form
of one. The message of a patch names its new files. patches prints the files that
changed.`,
		Example: `  git -C "$(podenv tree)" commit -am 'kubelet: …'
  podenv patches && git diff patches/`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) error {
			step := p.Reporter.Step("patches")
			written, err := source.WritePatches(ctx, a.layout, p.Series, step)
			if err := step.End(err); err != nil {
				return err
			}
			a.printWritten(written, "")
			return nil
		}),
	}
}

// printWritten prints each written file after prefix, and notes on standard error.
func (a *app) printWritten(w *source.Written, prefix string) {
	for _, file := range w.Files {
		fmt.Fprintln(a.out, prefix+file)
	}
	for _, note := range w.Notes {
		fmt.Fprintf(a.errs, "podenv: %s\n", note)
	}
}

func newExport(a *app) *cobra.Command {
	var dir string
	var fold, verify bool
	var with []string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the series for git am upstream, with the body of a pull request for each patch",
		Long: `export writes the series as git format-patch does, new files and generated code
included. In a kubernetes/kubernetes checkout at the release's tag, git am takes
them, and the result builds without podenv.

Generated code is the last patch. With --fold-generated each patch has the generated
code that it causes, as upstream expects it. This runs the generators once for each
patch that changes their inputs: minutes, the first time.

Beside each patch is a .md file: the body of its pull request in the form of the
template of its project, made from the message of the patch. 0000-cover-letter.md
has the order of the patches, their fates and which of them each needs.

With --with it writes these patches instead of the series. The message of each says
which of the others it needs.

With --verify it then runs the release's own checks, hack/verify-*.sh, on the result of
git am: an hour or more, the first time. docs/patches.md lists them.`,
		Example: `  podenv export
  podenv export --verify
  podenv export --fold-generated --to /tmp/export
  podenv export --series v1.37 --with patches/upstream/v1.37 --to /tmp/fixes
  cd kubernetes && git checkout v1.33.13 && git am …/_output/export/v1.33/*.patch`,
		Args: noArgs,
		RunE: a.onSeries(func(ctx context.Context, p *pipeline.Pipeline, _ []string) (err error) {
			switch {
			case fold && len(with) > 0:
				return &usageError{fmt.Errorf("--fold-generated: the patches of --with cause no generated code")}
			case verify && (len(with) > 0 || series.IsTekton(p.Series.Name)):
				return &usageError{fmt.Errorf("--verify: it checks a series of Kubernetes: leave --with out, or choose one with --series")}
			}
			if p.Series.Fixes, err = series.FindFixes(with); err != nil {
				return &usageError{fmt.Errorf("--with: %w", err)}
			}
			name := p.Series.Name
			if len(with) > 0 {
				name += "-fixes"
			}
			dir = cmp.Or(dir, a.layout.Export(name))
			step := p.Reporter.Step("export")
			files, err := source.Export(ctx, a.layout, p.Series, dir, fold, step)
			if err := step.End(err); err != nil {
				return err
			}
			for _, file := range files {
				fmt.Fprintln(a.out, file)
			}
			if verify {
				return a.prove(ctx, "^TestVerifyScripts$", "export", "-podenv.only=verify")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "run the release's own checks of patches, too")
	cmd.Flags().StringArrayVar(&with, "with", nil, "a patch of the release, or a folder of patches; may be repeated")
	cmd.Flags().BoolVar(&fold, "fold-generated", false, "put generated code into the patch that causes it")
	cmd.Flags().StringVar(&dir, "to", "", "the folder to write to (default _output/export/<series>)")
	return cmd
}
