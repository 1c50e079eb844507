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

// generate runs the generators: in parallel those that read only sources, then those that compile
// what these have generated.
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
	out, err := together(ctx, p.protobuf, p.methods, p.functions, p.clients, p.definitions)
	if err != nil {
		return nil, err
	}
	// The programs that are compiled next see the tree with the files generated so far.
	compiled, err := p.view("compiled")
	if err != nil {
		return nil, err
	}
	if err := out.write(compiled.dir); err != nil {
		return nil, err
	}
	more, err := together(ctx,
		func(ctx context.Context) (outputs, error) { return p.fromSchemas(ctx, compiled) },
		func(ctx context.Context) (outputs, error) { return p.fixtures(ctx, compiled) })
	maps.Copy(out, more)
	return out, err
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

// together runs generators in parallel, and returns the files of all.
func together(ctx context.Context, generators ...func(context.Context) (outputs, error)) (outputs, error) {
	group, ctx := errgroup.WithContext(ctx)
	made := make([]outputs, len(generators))
	for i, generate := range generators {
		group.Go(func() (err error) {
			made[i], err = generate(ctx)
			return err
		})
	}
	err := group.Wait()
	all := outputs{}
	for _, files := range made {
		maps.Copy(all, files)
	}
	return all, err
}

// generator prepares one of the tools, which looks for packages in v.
func (p *pipeline) generator(ctx context.Context, v *view, name string, args ...string) *run.Cmd {
	c := p.command(ctx, v, name, append([]string{"--go-header-file=" + v.path(boilerplate)}, args...)...)
	if p.gopath {
		// These generators do not support modules. They use go/build, which needs GOROOT: -trimpath
		// leaves it out of the programs.
		c.Env("GO111MODULE=off", "GOFLAGS=", "GOROOT="+p.tools.goRoot, "GOPATH="+v.gopath()+string(os.PathListSeparator)+p.dependencies())
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

// logger shows on one step which generators are running, several at once.
type logger struct {
	step *progress.Step

	mu      sync.Mutex
	running []string
}

// start shows that what is being generated, until the returned function is called.
func (l *logger) start(what string) (done func()) {
	l.update(func() { l.running = append(l.running, what) })
	return func() {
		l.update(func() {
			i := slices.Index(l.running, what)
			l.running = slices.Delete(l.running, i, i+1)
		})
	}
}

func (l *logger) update(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	if len(l.running) > 0 {
		l.step.Now("generating %s", strings.Join(l.running, ", "))
	}
}
