package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
)

// generator makes the generated code of a tree. Tests put a small one in the place of
// Kubernetes' own.
type generator struct {
	generate    func(context.Context, codegen.Options, *progress.Step) error
	inputsKey   func(context.Context, codegen.Options) (string, error)
	isGenerated func(path string) bool
}

// generatorsOf are the generators of the release that s stands on. Tekton's code is generated
// from its API types alone, which no patch changes.
func generatorsOf(s series.Series) generator {
	if !s.IsTekton() {
		return generator{generate: codegen.Generate, inputsKey: codegen.InputsKey, isGenerated: codegen.IsGenerated}
	}
	return generator{
		generate:    func(context.Context, codegen.Options, *progress.Step) error { return nil },
		inputsKey:   func(context.Context, codegen.Options) (string, error) { return "", nil },
		isGenerated: func(string) bool { return false },
	}
}

func (a *assembly) codegen() codegen.Options {
	return codegen.Options{
		Tree: a.tree.Dir, Release: a.series.Release, Base: a.state.Steps[0].Commit,
		Work: a.layout.Cache("codegen"),
	}
}

// generatedKey is a hash of what the generated code is made of, the generators included.
func (a *assembly) generatedKey(ctx context.Context) (string, error) {
	key, err := a.gen.inputsKey(ctx, a.codegen())
	return digest.Of("generated", a.state.Steps[0].Input, key), err
}

// commitGenerated commits what the tree's generators write. Where their inputs are those
// of an earlier run, its result is taken instead: most patches touch no API type.
func (a *assembly) commitGenerated(ctx context.Context) error {
	a.step.Now("looking for what has to be generated")
	key, err := a.generatedKey(ctx)
	if err != nil {
		return fmt.Errorf("generating code: %w", err)
	}
	a.state.Generated = key
	kept := filepath.Join(a.layout.Cache("source"), "generated", key[:32]+".diff")
	if a.reuseGenerated(ctx, kept) != nil {
		if err := a.generate(ctx, kept); err != nil {
			return err
		}
	}
	paths, err := a.generatedPaths(ctx)
	if err != nil || len(paths) == 0 {
		return err
	}
	text := message(kindGenerated, "Update generated code", "Written by the tree's own generators; no patch has it.")
	return a.commitStaged(ctx, kindGenerated, key, text)
}

// reuseGenerated applies and stages an earlier run's result. After an error the tree is as it was.
func (a *assembly) reuseGenerated(ctx context.Context, kept string) error {
	info, err := os.Stat(kept)
	if err != nil || info.Size() == 0 {
		return err
	}
	a.step.Now("reusing generated code")
	return a.tree.Run(ctx, "apply", "--index", "--whitespace=nowarn", kept)
}

// generate runs the generators, stages what they changed, and keeps it for the next time.
func (a *assembly) generate(ctx context.Context, kept string) error {
	a.step.Now("generating code")
	if err := a.gen.generate(ctx, a.codegen(), a.step); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("generating code: %w", err)
	}
	paths, err := a.generatedPaths(ctx)
	if err != nil {
		return err
	}
	if len(paths) > 0 {
		if err := a.tree.stage(ctx, paths); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return err
	}
	beside := kept + ".new"
	if err := a.tree.Run(ctx, "diff", "--cached", "--binary", "--full-index", "--no-renames", "--output="+beside, "HEAD"); err != nil {
		return err
	}
	return os.Rename(beside, kept)
}

// generatedPaths lists what the generators changed. A path that is not known as generated
// would end up in a patch one day, so it is an error.
func (a *assembly) generatedPaths(ctx context.Context) ([]string, error) {
	paths, err := a.tree.dirty(ctx)
	if err != nil {
		return nil, err
	}
	var strange []error
	for _, p := range paths {
		if !a.gen.isGenerated(p) {
			strange = append(strange, fmt.Errorf("the generators changed %s, which codegen.IsGenerated does not know: correct the one or the other", p))
		}
	}
	return paths, errors.Join(strange...)
}
