package codegen

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// pipeline is one run of a minor's generators.
type pipeline struct {
	*minor
	*reach
	tools *toolbox
	log   *logger
	tree  string
	work  string // folder of this run
}

// generate runs the generators in parallel, each as soon as its inputs are generated.
func (m *minor) generate(ctx context.Context, o Options, r *reach, step *progress.Step) (outputs, error) {
	tools, err := buildTools(ctx, o, m, step)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp(o.Work, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	p := &pipeline{minor: m, reach: r, tools: tools, log: &logger{step: step}, tree: o.Tree, work: work}
	if m.gopath {
		step.Now("linking what the API packages import")
		if err := linkDependencies(ctx, o.Tree, p.dependencies(), slices.Sorted(maps.Keys(r.packages))); err != nil {
			return nil, err
		}
	}
	return p.run(ctx)
}

// dependencies is the GOPATH of the packages outside the tree, for a minor that needs one.
func (p *pipeline) dependencies() string { return filepath.Join(p.work, "dependencies") }

func (p *pipeline) run(ctx context.Context) (outputs, error) {
	if err := p.checkOpenAPI(); err != nil {
		return nil, err
	}
	// The programs that are compiled below see the tree with the files generated before.
	compiled, err := p.view("compiled")
	if err != nil {
		return nil, err
	}
	results := &collector{files: outputs{}, view: compiled}
	group, ctx := errgroup.WithContext(ctx)
	methods := inBackground(group, func() error {
		inner, ctx := errgroup.WithContext(ctx)
		inner.Go(func() error { return results.addToView(p.protobuf(ctx)) })
		inner.Go(func() error { return results.addToView(p.methods(ctx)) })
		return inner.Wait()
	})
	group.Go(func() error { return results.add(p.functions(ctx)) })
	group.Go(func() error { return results.add(p.clients(ctx)) })
	defined := inBackground(group, func() error {
		definitions, err := p.definitions(ctx)
		if err != nil || !wait(ctx, methods) {
			return err
		}
		return results.addToView(definitions, nil)
	})
	group.Go(func() error {
		if !wait(ctx, defined) || !p.reachesOpenAPI() {
			return nil
		}
		return results.add(p.fromSchemas(ctx, compiled))
	})
	group.Go(func() error {
		types := methods
		if p.modelNames {
			types = defined // openapi-gen also writes methods of the types
		}
		if !wait(ctx, types) {
			return nil
		}
		return results.add(p.fixtures(ctx, compiled))
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results.files, nil
}

// view creates a view for the generator called name.
func (p *pipeline) view(name string) (*view, error) {
	v, err := newView(p.tree, filepath.Join(p.work, name))
	if err == nil && p.gopath {
		err = v.linkGopath()
	}
	if err != nil {
		return nil, fmt.Errorf("copying the tree for the generators: %w", err)
	}
	return v, nil
}

// inBackground runs f in group. The channel is closed when f has succeeded.
func inBackground(group *errgroup.Group, f func() error) <-chan struct{} {
	done := make(chan struct{})
	group.Go(func() error {
		if err := f(); err != nil {
			return err
		}
		close(done)
		return nil
	})
	return done
}

// wait waits until done is closed. It returns false if ctx ended first. Whoever ended ctx
// reports the error.
func wait(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// collector gathers the files that generators write.
type collector struct {
	mu    sync.Mutex
	files outputs
	view  *view
}

// addToView adds files, and writes them to the view for the generators that read them.
func (c *collector) addToView(files outputs, err error) error {
	if err := c.add(files, err); err != nil {
		return err
	}
	return files.write(c.view.dir)
}

// add adds files, unless the generator that wrote them failed with err.
func (c *collector) add(files outputs, err error) error {
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.Copy(c.files, files)
	return nil
}

// generator prepares one of the tools, which looks for packages in v.
func (p *pipeline) generator(ctx context.Context, v *view, name string, args ...string) *run.Cmd {
	c := p.command(ctx, v, name, append([]string{"--go-header-file=" + v.path(boilerplate)}, args...)...)
	if p.gopath {
		c.Env(p.tools.gopathEnv(v.gopath(), p.dependencies())...)
	}
	return c
}

// inputs returns the arguments that pass packages to a generator.
func (p *pipeline) inputs(packages []string) []string {
	if p.gopath {
		return []string{"--input-dirs=" + strings.Join(packages, ",")}
	}
	return packages
}

// command prepares the command called name, one of the tools or any other, in v.
func (p *pipeline) command(ctx context.Context, v *view, name string, args ...string) *run.Cmd {
	// os/exec looks in the PATH of this process, which does not have the tools.
	tool := filepath.Join(p.tools.dir, "bin", name)
	if _, err := os.Stat(tool); err == nil {
		name = tool
	}
	return run.Command(ctx, name, args...).Log(p.log.step.Log()).Env(p.tools.env...).Dir(v.dir)
}
