package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// RoundTrip checks that the tree's commits give back the series' files byte for
// byte. It leaves the files as they were found.
func RoundTrip(l layout.Layout, s series.Series) Check {
	return Check{Name: "patches round trip", Group: "source", Run: func(ctx context.Context, _ *progress.Step) ([]junit.Case, error) {
		changed, err := source.WritePatches(ctx, l, s, nil)
		if err != nil {
			return nil, err
		}
		if len(changed) > 0 {
			return nil, fmt.Errorf("the tree's commits give other files than the repository had: %s; look at them with git diff", strings.Join(changed, ", "))
		}
		return nil, nil
	}}
}

// Upstreamable checks what a maintainer upstream would do with the exported series:
// git am onto a pristine tree of the tag, then go build, without podenv. The result
// must be the tree that podenv tests, file for file.
func Upstreamable(l layout.Layout, tree func(context.Context) (*source.Tree, error)) Check {
	return Check{Name: "export onto a pristine tag", Group: "source", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		t, err := tree(ctx)
		if err != nil {
			return nil, err
		}
		work := filepath.Join(l.Output(), "verify", "pristine")
		if err := os.RemoveAll(work); err != nil {
			return nil, err
		}
		defer os.RemoveAll(work) //nolint:errcheck // made anew next time
		files, err := source.Export(ctx, l, t.Series, filepath.Join(work, "export"), nil)
		if err != nil {
			return nil, err
		}
		checkout := filepath.Join(work, "kubernetes")
		return nil, applyAndBuild(ctx, t, files, checkout, step)
	}}
}

func applyAndBuild(ctx context.Context, t *source.Tree, files []string, checkout string, step *progress.Step) error {
	git := func(args ...string) (string, error) {
		return run.Command(ctx, "git", append([]string{"-C", checkout}, args...)...).Log(step.Log()).Output()
	}
	release, _, err := t.Release(ctx)
	if err != nil {
		return err
	}
	step.Now("a pristine checkout of %s", t.Series.Release)
	if err := run.Command(ctx, "git", "clone", "--quiet", "--shared", "--no-checkout", t.Dir, checkout).Log(step.Log()).Run(); err != nil {
		return err
	}
	if _, err := git("checkout", "--quiet", release); err != nil {
		return err
	}
	step.Now("git am of %d files", len(files))
	am := []string{"-c", "user.name=podenv", "-c", "user.email=podenv@podenv.dev", "am", "--quiet"}
	if _, err := git(append(am, files...)...); err != nil {
		return err
	}
	want, err := run.Command(ctx, "git", "-C", t.Dir, "rev-parse", "HEAD^{tree}").Output()
	if err != nil {
		return err
	}
	got, err := git("rev-parse", "HEAD^{tree}")
	if err != nil {
		return err
	}
	if got != want {
		diff, _ := git("diff", "--stat", want, got)
		return fmt.Errorf("git am of the export gives another tree than podenv assembles:\n%s", diff)
	}
	step.Now("go build ./cmd/kubelet ./cmd/kube-apiserver")
	return run.Command(ctx, "go", "build", "-o", filepath.Join(checkout, "_output")+"/", "./cmd/kubelet", "./cmd/kube-apiserver").
		Dir(checkout).Env(TreeEnv...).Log(step.Log()).Run()
}
