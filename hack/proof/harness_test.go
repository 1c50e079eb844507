package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/examples"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/suite"
)

var (
	benchFile = flag.String("podenv.bench", "", "the file that measurements of the harness are written to")
	cold      = flag.Bool("podenv.cold", false, "measure the harness with empty Go caches and without images")
)

// harnessCluster and harnessStock are clusters for measurements only.
var (
	harnessCluster = layout.MustFind().UniqueName("podenv-bench")
	harnessStock   = layout.MustFind().UniqueName("podenv-bench-stock")
)

// harness measures the commands that a user of podenv waits for, in a copy of the repository.
type harness struct {
	ctx     context.Context
	layout  layout.Layout // of the copy
	p       *pipeline.Pipeline
	result  *pipeline.Result
	cluster *cluster.Cluster
	stock   *cluster.Cluster
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
		{"e2e, the stories, first", b.firstE2E},
		{"rebase, one patch to the minor before", b.rebase},
		{"push kubelet, one line edited", b.pushAfterEdit},
		{"node swap, kubelet to the stock release, first", b.swap},
		{"node swap, back and there again", b.swapAgain},
		{"up --stock, first", b.upStock},
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

// prepare copies the files that git tracks or would add.
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
	b.p = &pipeline.Pipeline{Layout: b.layout, Series: s, Reporter: steps.Reporter, Temporary: true}
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

// dropImages removes the tags of the node images and of their base images.
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
	config, err := b.cluster.RESTConfig()
	if err != nil {
		return err
	}
	_, err = examples.Run(b.ctx, config, gates, nil)
	return err
}

// nodeImage builds the node image again.
func (b *harness) nodeImage() error {
	// The cluster keeps the content of the image. Only the tag goes, and the next up creates
	// it again.
	if err := b.result.Engine.Docker(b.ctx, "rmi", "--force", b.result.Image).Run(); err != nil {
		return err
	}
	step := b.p.Reporter.Step("node image, again")
	_, err := nodeimage.Build(b.ctx, b.layout, b.result.Engine, b.result.Parts, step)
	return step.End(err)
}

// upAfterEditedPatch edits a file that a patch adds to the kubelet, and runs up again.
func (b *harness) upAfterEditedPatch() error {
	files, err := filepath.Glob(filepath.Join(b.layout.Root, "patches/new/pkg/kubelet/*.go"))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) == 0 {
		return errors.New("no patch adds a new file to pkg/kubelet: find another one to edit")
	}
	if err := appendTo(files[0], fmt.Sprintf("\nvar benchEdit = %d\n", time.Now().UnixNano())); err != nil {
		return err
	}
	return b.up()
}

// pushAfterEdit adds a line to the kubelet in the tree and pushes it.
func (b *harness) pushAfterEdit() error {
	t, err := source.Open(b.ctx, b.layout, b.p.Series, false, b.p.Reporter)
	if err != nil {
		return err
	}
	err = appendTo(filepath.Join(t.Dir, "pkg/kubelet/kubelet_pods.go"), fmt.Sprintf("\nfunc init() { klog.InfoS(\"podenv bench\", \"at\", %d) }\n", time.Now().UnixNano()))
	if err != nil {
		return err
	}
	r, err := b.p.Binaries(b.ctx, t, pipeline.Host, []string{"kubelet"})
	if err != nil {
		return err
	}
	kubelet, err := node.NewBuild("kubelet", r.Binaries["kubelet"], "", r.Version)
	if err != nil {
		return err
	}
	return node.Push(b.ctx, b.cluster, kubelet, b.p.Reporter)
}

// firstE2E compiles a suite and runs the specs of the stories.
func (b *harness) firstE2E() error {
	step := b.p.Reporter.Step("e2e envfiles")
	_, err := suite.Run(b.ctx, b.layout, suite.Options{Suite: "envfiles", Kubeconfig: b.cluster.Kubeconfig(), Focus: "the user stories"}, step)
	return step.End(err)
}

// rebase rebases an edited patch onto the previous minor, as podenv rebase does.
func (b *harness) rebase() error {
	older := b.p.Series.Older(b.layout, 1)
	if len(older) == 0 {
		return nil
	}
	to, err := series.Load(b.layout, older[0])
	if err != nil {
		return err
	}
	patch, comment, err := findEditableComment(b.p.Series, to)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(patch)
	if err != nil {
		return err
	}
	edited := strings.Replace(string(text), comment+"\n", comment+" This is for a measurement.\n", 1)
	if err := renameio.WriteFile(patch, []byte(edited), 0o644); err != nil {
		return err
	}
	step := b.p.Reporter.Step("rebase")
	done, _, err := source.Rebase(b.ctx, b.layout, b.p.Series, to, false, step)
	if err := step.End(err); err != nil {
		return err
	}
	if !slices.ContainsFunc(done, func(r source.Rebased) bool { return r.How != source.RebasedKept }) {
		return fmt.Errorf("no patch was carried to %s", to.Name)
	}
	p := *b.p
	p.Series = to
	_, err = p.Tree(b.ctx, source.Options{})
	return err
}

// findEditableComment finds a patch that is the same in both series, and a comment in it that is in
// no other patch: an edit of that comment rebases onto the other series without a conflict.
func findEditableComment(from, to series.Series) (patch, comment string, err error) {
	own, err := filepath.Glob(filepath.Join(from.Dir, "*.patch"))
	if err != nil {
		return "", "", err
	}
	others, err := filepath.Glob(filepath.Join(to.Dir, "*.patch"))
	if err != nil {
		return "", "", err
	}
	changes, lines := map[string]bool{}, map[string]int{}
	for _, name := range slices.Concat(own, others) {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", "", err
		}
		_, diff, _ := strings.Cut(string(text), "\ndiff --git ")
		if !slices.Contains(own, name) {
			changes[stripPositions(diff)] = true
		}
		for line := range strings.Lines(diff) {
			if line != "" {
				lines[line[1:]]++
			}
		}
	}
	for _, name := range own {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", "", err
		}
		_, diff, _ := strings.Cut(string(text), "\ndiff --git ")
		if !changes[stripPositions(diff)] {
			continue
		}
		for line := range strings.Lines(diff) {
			if strings.HasPrefix(strings.TrimLeft(line, "+\t "), "// ") && line[0] == '+' && lines[line[1:]] == 2 {
				return name, strings.TrimSuffix(line, "\n"), nil
			}
		}
	}
	return "", "", fmt.Errorf("no patch of %s that adds a comment is the same in %s", from.Name, to.Name)
}

// stripPositions removes from a diff what differs between releases even if the change is the same:
// blob hashes and the positions of hunks.
func stripPositions(diff string) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if !strings.HasPrefix(line, "index ") && !strings.HasPrefix(line, "@@ ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// swap runs the stock kubelet on a node. It builds the kubelet if needed.
func (b *harness) swap() error {
	kubelet, err := b.p.Component(b.ctx, "stock:"+b.p.Series.Name, "kubelet")
	if err != nil {
		return err
	}
	_, err = node.Swap(b.ctx, b.cluster, harnessCluster+"-worker", kubelet, nil, b.p.Reporter)
	return err
}

// swapAgain undoes the swap and swaps again, to builds that exist.
func (b *harness) swapAgain() error {
	if _, _, err := node.Undo(b.ctx, b.cluster, harnessCluster+"-worker", b.p.Reporter); err != nil {
		return err
	}
	return b.swap()
}

// upStock is what podenv up --stock does. The kubelet is built already.
func (b *harness) upStock() error {
	p := *b.p
	p.Stock = true
	result, err := p.NodeImage(b.ctx)
	if err != nil {
		return err
	}
	b.stock, err = p.Cluster(b.ctx, result, cluster.Config{Name: harnessStock, Workers: 1, Recreate: true})
	return err
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// clean deletes the clusters and the copy, also after Ctrl-C.
func (b *harness) clean() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.ctx), time.Minute)
	defer cancel()
	step := b.p.Reporter.Step("clean up")
	var err error
	for _, c := range []*cluster.Cluster{b.cluster, b.stock} {
		if c != nil {
			err = errors.Join(err, c.Delete(ctx, step))
		}
	}
	step.End(errors.Join(err, removeAll(filepath.Dir(b.layout.Root)))) //nolint:errcheck // it has been shown
}

// removeAll is os.RemoveAll for a directory that may have a module cache, whose directories are
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
