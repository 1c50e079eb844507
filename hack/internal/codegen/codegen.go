// Package codegen runs the generators of an assembled Kubernetes tree, built from that
// tree, so that every generated file agrees with the API types.
//
// Only what a change can reach is generated. The change is what differs from the release. It
// reaches the packages that it touches, and those that import them, directly or not. The
// generators run in parallel, each in a view of the tree. At the end the tree gets all of their
// results, or none:
//
//	change ─► packages ─┬─► protobuf, methods, openapi ─────────┬─► OpenAPI specs, apply configurations, fixtures ─► tree
//	                    └─► conversion, defaults, clients, … ───┘
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

// pipeline is one run of a minor's generators.
type pipeline struct {
	*minor
	*reach
	tools   *toolbox
	step    *progress.Step
	release string
	tree    string
	work    string // folder of this run
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
	p := &pipeline{minor: m, reach: r, tools: tools, step: step, release: o.Release, tree: o.Tree, work: work}
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

// together runs generators, two at a time, by what they generate. It shows which of them are not done,
// and returns the files of all.
func (p *pipeline) together(ctx context.Context, generators map[string]generator) (outputs, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2) // each takes more than 1 GiB of memory
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
