package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/stories"
)

var (
	benchFile = flag.String("podenv.bench", "", "the file that measurements of the harness are written to")
	cold      = flag.Bool("podenv.cold", false, "measure the harness with empty Go caches and without images")
)

// harnessCluster keeps measurements away from other clusters.
const harnessCluster = "podenv-bench"

// harness measures what a user of podenv waits for, on a copy of the repository.
type harness struct {
	ctx     context.Context
	layout  layout.Layout // of the copy
	p       *pipeline.Pipeline
	result  *pipeline.Result
	cluster *cluster.Cluster
	steps   map[string]time.Duration
}

// TestHarness writes what it measures in the Go benchmark format.
func TestHarness(t *testing.T) {
	requireSeries(t)
	b := &harness{ctx: ctx, steps: map[string]time.Duration{}}
	if err := b.prepare(); err != nil {
		t.Fatal(err)
	}
	defer b.clean()
	var results strings.Builder
	report := func(what string, took time.Duration) {
		fmt.Fprintf(&results, "BenchmarkHarness/%s 1 %d ns/op\n", strings.ReplaceAll(what, " ", "_"), took.Nanoseconds())
	}
	for i, m := range []struct {
		what string
		do   func() error
	}{
		{"up, first", b.up},
		{"up, nothing changed", b.up},
		{"node image from built binaries", b.nodeImage},
		{"up, one kubelet patch edited", b.upAfterEditedPatch},
		{"push kubelet, one line edited", b.pushAfterEdit},
	} {
		start := time.Now()
		if err := m.do(); err != nil {
			t.Fatalf("%s: %v", m.what, err)
		}
		report(m.what, time.Since(start))
		if i == 0 {
			for _, step := range []string{"source tree", "go build", "root file system", "cluster " + harnessCluster} {
				report("of which "+step, b.steps[step])
			}
		}
	}
	if err := os.MkdirAll(filepath.Dir(*benchFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := renameio.WriteFile(*benchFile, []byte(results.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// prepare makes the copy, of the files that git tracks or would add.
func (b *harness) prepare() error {
	scratch := filepath.Join(repo.Output(), "bench", "work")
	b.layout = layout.Layout{Root: filepath.Join(scratch, "repo")}
	if err := removeAll(scratch); err != nil {
		return err
	}
	if err := os.MkdirAll(b.layout.Root, 0o755); err != nil {
		return err
	}
	const copyTracked = `git ls-files -z --cached --others --exclude-standard --deduplicate |
		tar --create --null --files-from=- --ignore-failed-read --warning=no-failed-read | tar --extract --directory="$0"`
	if err := run.Command(b.ctx, "sh", "-c", copyTracked, b.layout.Root).Dir(repo.Root).Run(); err != nil {
		return err
	}
	s, err := series.Load(b.layout, *seriesName)
	if err != nil {
		return err
	}
	b.p = &pipeline.Pipeline{Layout: b.layout, Series: s, Reporter: steps.Reporter}
	b.p.Reporter.Timings = func(name string, took time.Duration, _ bool, err error) {
		if err == nil {
			b.steps[name] += took
		}
	}
	if !*cold {
		return nil
	}
	for name, dir := range map[string]string{"GOCACHE": "gocache", "GOMODCACHE": "modcache"} {
		if err := os.Setenv(name, filepath.Join(scratch, dir)); err != nil {
			return err
		}
	}
	return b.dropImages()
}

// dropImages takes away the names of the node images, and of what they stand on.
func (b *harness) dropImages() error {
	e, err := b.p.Engine(b.ctx)
	if err != nil {
		return err
	}
	refs, err := e.Docker(b.ctx, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference=podenv/*").Output()
	if err != nil || refs == "" {
		return err
	}
	return e.Docker(b.ctx, append([]string{"rmi", "--force"}, strings.Fields(refs)...)...).Run()
}

// up is what podenv up does.
func (b *harness) up() error {
	gates, err := b.p.Gates()
	if err != nil {
		return err
	}
	if b.result, err = b.p.NodeImage(b.ctx); err != nil {
		return err
	}
	if b.cluster, err = b.p.Cluster(b.ctx, b.result, cluster.Config{Name: harnessCluster, Workers: 1, Gates: gates, Recreate: true}); err != nil {
		return err
	}
	_, err = stories.Run(b.ctx, stories.Options{Kubeconfig: b.cluster.Kubeconfig()}, nil)
	return err
}

// nodeImage builds the node image again.
func (b *harness) nodeImage() error {
	// The cluster stays on the image's content, only the name goes; the next up makes
	// it anew.
	if err := b.result.Engine.Docker(b.ctx, "rmi", "--force", b.result.Image.Ref).Run(); err != nil {
		return err
	}
	step := b.p.Reporter.Step("node image, again")
	_, err := nodeimage.Build(b.ctx, b.layout, b.result.Engine, b.result.Build, step)
	return step.End(err)
}

// addedError is a line with an error that a patch adds; the first group ends where its
// text begins.
var addedError = regexp.MustCompile(`(?m)^(\+.*fmt\.Errorf\(").*$`)

// upAfterEditedPatch edits a patch of the kubelet as a reviewer's remark would make
// one do, and goes up again.
func (b *harness) upAfterEditedPatch() error {
	if err := editKubeletPatch(b.p.Series, time.Now()); err != nil {
		return err
	}
	return b.up()
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
func (b *harness) pushAfterEdit() error {
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
	r, err := b.p.Binaries(b.ctx, t, []string{"kubelet"})
	if err != nil {
		return err
	}
	kubelet, err := node.NewBuild("kubelet", r.Binaries["kubelet"], "", r.Version)
	if err != nil {
		return err
	}
	return node.Push(b.ctx, b.cluster, kubelet, b.p.Reporter)
}

// clean deletes the cluster and the copy, also after Ctrl-C.
func (b *harness) clean() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), time.Minute)
	defer cancel()
	step := b.p.Reporter.Step("clean up")
	var err error
	if b.cluster != nil {
		err = b.cluster.Delete(ctx, step)
	}
	step.End(errors.Join(err, removeAll(filepath.Dir(b.layout.Root)))) //nolint:errcheck // it has been shown
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
