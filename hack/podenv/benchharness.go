package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"podenv.dev/hack/internal/bench"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/stories"
)

// harnessBench is one run of the measurements of the harness, on a copy of the
// repository.
type harnessBench struct {
	app     *app
	cold    bool
	layout  layout.Layout // of the copy
	p       *pipeline.Pipeline
	result  *pipeline.Result
	cluster *cluster.Cluster
	timings timings
	rows    []timing
}

func (b *harnessBench) run(ctx context.Context) (*bench.Report, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	defer b.clean(ctx)
	for _, m := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"up, first", b.up},
		{"up, nothing changed", b.up},
		{"node image from built binaries", b.nodeImage},
		{"up, one kubelet patch edited", b.upAfterEditedPatch},
		{"push kubelet, one line edited", b.pushAfterEdit},
	} {
		start := time.Now()
		if err := m.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", m.what, err)
		}
		b.rows = append(b.rows, timing{name: m.what, took: time.Since(start)})
		if len(b.rows) == 1 {
			for _, step := range []string{"source tree", "go build", "root file system", "cluster " + benchCluster} {
				b.rows = append(b.rows, timing{name: "  of which " + step, took: b.timings.sum(step)})
			}
		}
	}
	return b.report(), nil
}

// prepare makes the copy.
func (b *harnessBench) prepare(ctx context.Context) error {
	b.layout = layout.Layout{Root: filepath.Join(b.app.layout.Output(), "bench", "repo")}
	scratch := filepath.Dir(b.layout.Root)
	if err := removeAll(scratch); err != nil {
		return err
	}
	if err := copyTracked(ctx, b.app.layout.Root, b.layout.Root); err != nil {
		return err
	}
	s, err := series.Load(b.layout, b.app.series)
	if err != nil {
		return err
	}
	reporter := b.app.reporter()
	reporter.Timings = b.timings.add
	b.p = &pipeline.Pipeline{Layout: b.layout, Series: s, Reporter: reporter}
	if !b.cold {
		return nil
	}
	for name, dir := range map[string]string{"GOCACHE": "gocache", "GOMODCACHE": "modcache"} {
		if err := os.Setenv(name, filepath.Join(scratch, dir)); err != nil {
			return err
		}
	}
	return b.dropImages(ctx)
}

// dropImages takes away the names of the node images, and of what they stand on.
func (b *harnessBench) dropImages(ctx context.Context) error {
	e, err := b.p.Engine(ctx)
	if err != nil {
		return err
	}
	refs, err := e.Docker(ctx, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=podenv/*").Output()
	if err != nil {
		return err
	}
	for _, ref := range strings.Fields(refs) {
		if err := e.Docker(ctx, "rmi", "--force", ref).Run(); err != nil {
			return err
		}
	}
	return nil
}

// up is what podenv up does.
func (b *harnessBench) up(ctx context.Context) error {
	gates, err := b.p.Gates()
	if err != nil {
		return err
	}
	if b.result, err = b.p.NodeImage(ctx); err != nil {
		return err
	}
	if b.cluster, err = b.p.Cluster(ctx, b.result, cluster.Config{Name: benchCluster, Workers: 1, Gates: gates}); err != nil {
		return err
	}
	_, err = stories.Run(ctx, stories.Options{Kubeconfig: b.cluster.Kubeconfig()}, nil)
	return err
}

// nodeImage builds the node image again.
func (b *harnessBench) nodeImage(ctx context.Context) error {
	// The cluster stays on the image's content, only the name goes; the next up makes
	// it anew.
	if err := b.result.Engine.Docker(ctx, "rmi", "--force", b.result.Image.Ref).Run(); err != nil {
		return err
	}
	step := b.p.Reporter.Step("node image, again")
	_, err := nodeimage.Build(ctx, b.layout, b.result.Engine, b.result.Build, step)
	return step.End(err)
}

// addedError is a line with an error that a patch adds; the first group ends where its
// text begins.
var addedError = regexp.MustCompile(`(?m)^(\+.*fmt\.Errorf\(").*$`)

// upAfterEditedPatch edits a patch of the kubelet as a reviewer's remark would make
// one do, and goes up again.
func (b *harnessBench) upAfterEditedPatch(ctx context.Context) error {
	if err := editKubeletPatch(b.p.Series, time.Now()); err != nil {
		return err
	}
	return b.up(ctx)
}

// editKubeletPatch changes the text of an error that a patch of the series adds to the
// kubelet, in a line that no other patch has: these apply as before.
func editKubeletPatch(s series.Series, now time.Time) error {
	files, err := s.Patches()
	if err != nil {
		return err
	}
	patches := make([]string, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		patches[i] = string(data)
	}
	all := strings.Join(patches, "")
	for i, text := range patches {
		from := strings.Index(text, "+++ b/pkg/kubelet/")
		if from < 0 {
			continue
		}
		for _, at := range addedError.FindAllStringSubmatchIndex(text[from:], -1) {
			if strings.Count(all, text[from+at[0]+1:from+at[1]]) > 1 {
				continue
			}
			end := from + at[3]
			edited := fmt.Sprintf("%sat %d: %s", text[:end], now.UnixNano(), text[end:])
			return os.WriteFile(files[i], []byte(edited), 0o644)
		}
	}
	return errors.New("no patch adds an error to the kubelet that the others leave alone")
}

// pushAfterEdit adds a line to the kubelet in the tree and pushes it.
func (b *harnessBench) pushAfterEdit(ctx context.Context) error {
	t, err := source.Open(b.layout, b.p.Series, false)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(t.Dir, "pkg/kubelet/kubelet_pods.go"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "\nfunc init() { klog.InfoS(\"podenv bench\", \"at\", %d) }\n", time.Now().UnixNano())
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	r, err := b.p.Binaries(ctx, t, []string{"kubelet"})
	if err != nil {
		return err
	}
	step := b.p.Reporter.Step("push kubelet")
	return step.End(b.cluster.Push(ctx, "kubelet", r.Binaries["kubelet"], "", step))
}

// clean deletes the cluster and the copy, also after Ctrl-C.
func (b *harnessBench) clean(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	step := b.p.Reporter.Step("clean up")
	var err error
	if b.cluster != nil {
		err = b.cluster.Delete(ctx, step)
	}
	step.End(errors.Join(err, removeAll(filepath.Dir(b.layout.Root)))) //nolint:errcheck // it has been shown
}

func (b *harnessBench) report() *bench.Report {
	t := bench.Table{Name: "harness", Columns: []bench.Column{{Name: "what"}, {Name: "time", Unit: bench.Seconds}}}
	for _, row := range b.rows {
		t.Add(row.name, row.took.Seconds())
	}
	return &bench.Report{Table: t}
}

// copyTracked copies the files that git tracks or would add.
func copyTracked(ctx context.Context, from, to string) error {
	out, err := run.Command(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate").Dir(from).Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, not yet committed
		}
		if err != nil {
			return err
		}
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// removeAll is os.RemoveAll that also takes a module cache, whose folders are
// read-only.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}
