package verify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/codegen"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// EachPatch applies the series one patch at a time and, after each, generates code,
// compiles the packages that the patch touches and runs their tests: a patch that
// stands only with its successors cannot be bisected or sent.
func EachPatch(l layout.Layout, tree func(context.Context) (*source.Tree, error)) Check {
	return Check{Name: "each patch by itself", Group: "source", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		t, err := tree(ctx)
		if err != nil {
			return nil, err
		}
		w := &walk{layout: l, tree: t, step: step, dir: filepath.Join(l.Output(), "verify", "steps")}
		if err := os.RemoveAll(w.dir); err != nil {
			return nil, err
		}
		defer os.RemoveAll(w.dir) //nolint:errcheck // made anew next time
		return w.run(ctx)
	}}
}

// walk is one way through a series.
type walk struct {
	layout  layout.Layout
	tree    *source.Tree
	dir     string // the checkout that it walks in
	step    *progress.Step
	release string // its commit
	key     string // of the inputs that code was last generated from
}

func (w *walk) git(ctx context.Context, args ...string) (string, error) {
	identity := []string{"-C", w.dir, "-c", "user.name=podenv", "-c", "user.email=podenv@podenv.dev"}
	return run.Command(ctx, "git", append(identity, args...)...).Log(w.step.Log()).Output()
}

func (w *walk) run(ctx context.Context) ([]junit.Case, error) {
	if err := run.Command(ctx, "git", "clone", "--quiet", "--shared", "--no-checkout", w.tree.Dir, w.dir).Run(); err != nil {
		return nil, err
	}
	patches, err := w.patches(ctx)
	if err == nil {
		w.release, _, err = w.tree.Release(ctx)
	}
	if err != nil {
		return nil, err
	}
	if len(patches) == 0 {
		return nil, fmt.Errorf("series %s has no patches: add some to %s", w.tree.Series.Name, w.tree.Series.Dir)
	}
	if _, err := w.git(ctx, "checkout", "--quiet", patches[0].commit+"^"); err != nil {
		return nil, err
	}
	if w.key, err = codegen.InputsKey(ctx, w.generators()); err != nil {
		return nil, err
	}
	var cases []junit.Case
	for _, p := range patches {
		w.step.Now("%s", p.subject)
		c := junit.Case{Name: p.subject, ClassName: "patch"}
		if err := w.one(ctx, p); err != nil {
			if ctx.Err() != nil {
				return cases, ctx.Err()
			}
			c.Failure = &junit.Message{Message: firstLine(err.Error()), Text: err.Error()}
		}
		cases = append(cases, c)
	}
	return cases, nil
}

func (w *walk) generators() codegen.Options {
	return codegen.Options{Tree: w.dir, Release: w.tree.Series.Release, Base: w.release, Work: w.layout.Cache("codegen")}
}

// patch is one commit of the series.
type patch struct{ commit, subject string }

// patches lists the series' commits in order: all between the release and the
// head that do not carry the mark of podenv's own commits.
func (w *walk) patches(ctx context.Context) ([]patch, error) {
	out, err := run.Command(ctx, "git", "-C", w.tree.Dir, "log", "--reverse", "--format=%H %s", "--invert-grep", "--grep=^Podenv-Commit: ", "HEAD").Output()
	if err != nil {
		return nil, err
	}
	var patches []patch
	for line := range strings.Lines(out) {
		commit, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		patches = append(patches, patch{commit, subject})
	}
	return patches, nil
}

// one applies p, generates, and runs the tests of the packages that p touches.
func (w *walk) one(ctx context.Context, p patch) error {
	if _, err := w.git(ctx, "cherry-pick", p.commit); err != nil {
		return err
	}
	key, err := codegen.InputsKey(ctx, w.generators())
	if err != nil {
		return err
	}
	if key != w.key {
		if err := codegen.Generate(ctx, w.generators(), w.step); err != nil {
			return err
		}
		if _, err := w.git(ctx, "add", "--all"); err != nil {
			return err
		}
		if _, err := w.git(ctx, "commit", "--quiet", "--allow-empty", "--message", "generated"); err != nil {
			return err
		}
		w.key = key
	}
	files, err := w.tree.ChangedIn(ctx, p.commit)
	if err != nil {
		return err
	}
	packages := source.Packages(files)
	if len(packages) == 0 {
		return nil
	}
	// As with the whole series, a test that passes when it is run again has passed.
	cases, err := upstreamTests(ctx, w.layout, "patch", w.dir, packages, w.step)
	if errors.Is(err, errNoTest) {
		// As pkg/features in old releases. go test leaves such packages out.
		return run.Command(ctx, "go", append([]string{"build"}, packages...)...).Dir(w.dir).Env(TreeEnv...).Log(w.step.Log()).Run()
	}
	if err != nil {
		return err
	}
	var failed []string
	for _, c := range cases {
		if c.Failure != nil || c.Error != nil {
			failed = append(failed, c.ClassName+" "+c.Name)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("these tests fail after the patch: %s", strings.Join(failed, ", "))
	}
	return nil
}
