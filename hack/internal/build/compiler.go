package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// goEnv and goFlags are the same for every tree, stock or patched, so that they share
// what the Go cache has. -mod=mod: the published staging modules name each other by
// version, which the tree's replace lines override. -buildvcs=false: the stamp says
// what was built, and git's state would relink all at each commit.
var (
	goEnv   = []string{"GOWORK=off", "GOFLAGS=", "CGO_ENABLED=0", "GOOS=linux"}
	goFlags = []string{"-mod=mod", "-trimpath", "-buildvcs=false"}
)

// compiler runs the Go tool on a tree.
type compiler struct {
	tree  *source.Tree
	dir   string // the build's folder
	flags string // for the linker
	first bool   // nothing was built here before: count the packages for the progress
}

// stage is where the Go tool writes binaries. They stay there: the tool links a binary
// again only if the one it finds is out of date.
func (c *compiler) stage() string { return filepath.Join(c.dir, "work", "bin") }

// compile brings components in the stage up to date, in one call of the Go tool.
func (c *compiler) compile(ctx context.Context, components []string, step *progress.Step) error {
	// An interrupted Go tool leaves its folder behind, a gigabyte at times. A folder of
	// its own beside the stage also lets it rename what it linked, where copying could
	// be cut short.
	tmp := filepath.Join(c.dir, "work", "tmp")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	for _, dir := range []string{tmp, c.stage()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}

	watch := newWatch(components, c.stage(), step)
	if c.first {
		go c.countPackages(ctx, components, watch)
	}
	defer watch.every()()
	args := append([]string{"build", "-v", "-o", c.stage() + string(filepath.Separator), "-ldflags", c.flags}, goFlags...)
	err := run.Command(ctx, "go", append(args, mainPackages(components)...)...).
		Dir(c.tree.Dir).Env(goEnv...).Env("GOTMPDIR=" + tmp).
		Log(io.MultiWriter(step.Log(), watch)).Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.explain(ctx, err, watch.said())
}

// explain turns a failed build's output into what a person can act on.
func (c *compiler) explain(ctx context.Context, err error, said []string) error {
	if e := newCompileError(ctx, c.tree, said); e != nil {
		return e
	}
	var failed *run.Error
	if errors.As(err, &failed) {
		// The packages that were compiled say nothing about the failure.
		failed.Tail = strings.Join(said[max(0, len(said)-10):], "\n")
	}
	output := strings.Join(said, "\n")
	for sign, remedy := range map[string]string{
		"no space left on device": "free some space: a build needs about 5 GB for its own files and Go's cache",
		"signal: killed":          "the machine ran out of memory: a build needs about 4 GB",
		"dial tcp":                "a Go module is missing and the network cannot be reached: see the proxy settings of go env",
	} {
		if strings.Contains(output, sign) {
			return fmt.Errorf("%w\n  %s", err, remedy)
		}
	}
	return err
}

// countPackages tells watch how many packages components consist of.
func (c *compiler) countPackages(ctx context.Context, components []string, watch *watch) {
	args := append(append([]string{"list", "-deps"}, goFlags...), mainPackages(components)...)
	out, err := run.Command(ctx, "go", args...).Dir(c.tree.Dir).Env(goEnv...).Output()
	if err == nil { // without the number the progress is as true, only less telling
		watch.total(strings.Count(out, "\n") + 1)
	}
}

func mainPackages(components []string) []string {
	packages := make([]string, len(components))
	for i, c := range components {
		packages[i] = "./cmd/" + c
	}
	return packages
}
