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
	step  *progress.Step
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
	p := &pipeline{minor: m, reach: r, tools: tools, step: step, tree: o.Tree, work: work}
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
	out, err := p.together(ctx, map[string]generator{
		"protobuf": p.protobuf, "methods": p.methods, "functions": p.functions, "clients": p.clients, "OpenAPI definitions": p.definitions,
	})
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
	more, err := p.together(ctx, map[string]generator{
		"OpenAPI specs and apply configurations": func(ctx context.Context) (outputs, error) { return p.fromSchemas(ctx, compiled) },
		"round-trip fixtures":                    func(ctx context.Context) (outputs, error) { return p.fixtures(ctx, compiled) },
	})
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

// generator writes generated files, none if the change does not reach them.
type generator func(context.Context) (outputs, error)

// together runs generators in parallel, by what they generate. It shows which of them are running,
// and returns the files of all.
func (p *pipeline) together(ctx context.Context, generators map[string]generator) (outputs, error) {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	all, running := outputs{}, slices.Sorted(maps.Keys(generators))
	p.step.Now("generating %s", strings.Join(running, ", "))
	for what, generate := range generators {
		group.Go(func() error {
			files, err := generate(ctx)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(all, files)
			if running = slices.DeleteFunc(running, func(r string) bool { return r == what }); len(running) > 0 {
				p.step.Now("generating %s", strings.Join(running, ", "))
			}
			return err
		})
	}
	err := group.Wait()
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
	return run.Command(ctx, name, args...).Log(p.step.Log()).Env(p.tools.env...).Dir(v.dir)
}
