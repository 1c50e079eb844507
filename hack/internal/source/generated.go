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

// generator writes the generated code of a tree. Tests use a small one instead of those of Kubernetes.
type generator struct {
	generate    func(context.Context, codegen.Options, *progress.Step) error
	inputsKey   func(context.Context, codegen.Options) (string, error)
	isGenerated func(path string) bool
}

// generatorsOf returns the generators for the series. Tekton needs none: its code is generated
// from API types only, which no patch changes.
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

// generatedKey is a hash of the inputs of the generated code, including the generators.
func (a *assembly) generatedKey(ctx context.Context) (string, error) {
	key, err := a.gen.inputsKey(ctx, a.codegen())
	return digest.Of("generated", a.state.Steps[0].Input, key), err
}

// commitGenerated commits the output of the tree's generators. It reuses the cached output of
// an earlier run with the same inputs, since most patches change no API type.
func (a *assembly) commitGenerated(ctx context.Context) error {
	a.step.Now("looking for what has to be generated")
	key, err := a.stageGenerated(ctx)
	if err != nil {
		return err
	}
	a.state.Generated = key
	paths, err := a.generatedPaths(ctx)
	if err != nil || len(paths) == 0 {
		return err
	}
	text := message(kindGenerated, "Update generated code", "Written by the tree's own generators; no patch has it.")
	commit, err := a.tree.commit(ctx, text, a.state.Steps[0].Commit)
	if err != nil {
		return err
	}
	a.state.Steps = append(a.state.Steps, stateStep{Kind: kindGenerated, Input: key, Commit: commit})
	return writeState(a.tree.Dir, a.state)
}

// stageGenerated stages the output of the generators, and returns the key of their inputs.
func (a *assembly) stageGenerated(ctx context.Context) (key string, err error) {
	if key, err = a.generatedKey(ctx); err != nil {
		return "", fmt.Errorf("generating code: %w", err)
	}
	cached := filepath.Join(a.layout.Cache("source"), "generated", key[:32]+".diff")
	if a.reuseGenerated(ctx, cached) != nil {
		err = a.generate(ctx, cached)
	}
	return key, err
}

// reuseGenerated applies and stages the cached diff. On error the tree is unchanged.
func (a *assembly) reuseGenerated(ctx context.Context, cached string) error {
	info, err := os.Stat(cached)
	if err != nil || info.Size() == 0 {
		return err
	}
	a.step.Now("reusing generated code")
	return a.tree.Run(ctx, "apply", "--index", "--whitespace=nowarn", cached)
}

// generate runs the generators, stages their changes, and writes the diff to cached.
func (a *assembly) generate(ctx context.Context, cached string) error {
	a.step.Now("generating code")
	if err := a.gen.generate(ctx, a.codegen(), a.step); err != nil {
		return fmt.Errorf("generating code: %w", err)
	}
	if err := a.tree.Run(ctx, "add", "--all"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
		return err
	}
	tmp := cached + ".new"
	if err := a.tree.Run(ctx, "diff", "--cached", "--binary", "--full-index", "--no-renames", "--output="+tmp, "HEAD"); err != nil {
		return err
	}
	return os.Rename(tmp, cached)
}

// generatedPaths lists the files that the generators changed. A path that codegen.IsGenerated
// does not know is an error, because WritePatches would put the file into a patch.
func (a *assembly) generatedPaths(ctx context.Context) ([]string, error) {
	paths, err := a.tree.dirty(ctx)
	if err != nil {
		return nil, err
	}
	var unknown []error
	for _, p := range paths {
		if !a.gen.isGenerated(p) {
			unknown = append(unknown, fmt.Errorf("the generators changed %s, which codegen.IsGenerated does not know: correct the one or the other", p))
		}
	}
	return paths, errors.Join(unknown...)
}
