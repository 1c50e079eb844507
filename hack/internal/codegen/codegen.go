package codegen

import (
	"context"
	"fmt"
	"path/filepath"

	"podenv.dev/hack/internal/progress"
)

// Options says what is generated, and where. The folders are absolute paths.
type Options struct {
	// Tree is the folder of the assembled tree, a git repository.
	Tree string
	// Release is the tag that the tree is based on, as in "v1.33.13".
	Release string
	// Base is the tree's commit of the unmodified release. The changes since then decide
	// what is generated.
	Base string
	// Work is the folder for the built generators. It is safe to delete.
	Work string
	// All generates for every package, whatever changed. It takes minutes. On an
	// unmodified release it must change nothing.
	All bool
}

// Generate brings the generated files of o.Tree up to date with its sources, committed
// or not. It commits nothing. Generated files that no change affects any more get the
// release's content again, so that the result depends only on the sources. If Generate
// fails, the tree is unchanged.
func Generate(ctx context.Context, o Options, step *progress.Step) error {
	return generate(ctx, o, func(ctx context.Context, o Options, r *reach, step *progress.Step) (outputs, error) {
		m, err := minorOf(o.Release) // an unknown minor fails only if there is something to generate
		if err != nil {
			return nil, err
		}
		return m.generate(ctx, o, r, step)
	}, step)
}

// generators generates all files of the packages that a change reaches.
type generators func(ctx context.Context, o Options, r *reach, step *progress.Step) (outputs, error)

func generate(ctx context.Context, o Options, run generators, step *progress.Step) error {
	step.Now("looking for changed API types")
	c, err := findChange(ctx, o)
	if err != nil {
		return err
	}
	out := outputs{}
	if c.everything || len(c.paths()) > 0 {
		r, err := findReach(ctx, o, c)
		if err != nil {
			return err
		}
		if out, err = run(ctx, o, r, step); err != nil {
			return err
		}
	}
	if err := c.restoreStale(ctx, out); err != nil {
		return err
	}
	return out.write(o.Tree)
}

// outputs are the contents of generated files, by path in the tree. A nil value deletes
// the file.
type outputs map[string][]byte

// write writes the files to a tree or a view. It does not touch files that are the same, so that
// the Go build cache does not read them again. It replaces files atomically, because a
// compilation may be running in the view.
func (out outputs) write(dir string) error {
	for path, data := range out {
		if err := writeIfChanged(filepath.Join(dir, path), data); err != nil {
			return fmt.Errorf("writing a generated file: %w", err)
		}
	}
	return nil
}
