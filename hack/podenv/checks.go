package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/doctor"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
	"podenv.dev/hack/internal/stories"
	"podenv.dev/hack/internal/suite"
	"podenv.dev/hack/internal/verify"
)

// check is what a verify.Check runs.
type check func(context.Context, *progress.Step) ([]junit.Case, error)

// checks lists everything that proves the project. What a check needs stands
// before it.
func (t *testRun) checks() []verify.Check {
	l := t.app.layout
	after := func(c verify.Check, needs ...string) verify.Check {
		c.Needs = needs
		return c
	}
	mine := func(name, group string, run check, needs ...string) verify.Check {
		return verify.Check{Name: name, Group: group, Run: run, Needs: needs}
	}
	// What compiles keeps the processors busy while what has a cluster mostly waits.
	compiles := func(c verify.Check) verify.Check {
		c.Lane = "compiling"
		return c
	}
	// What has clusters of its own waits, too: one of them and the suites' at a time, which
	// the kernel's default of 128 inotify instances has room for.
	ownCluster := func(c verify.Check) verify.Check {
		c.Lane = "own clusters"
		return c
	}
	checks := []verify.Check{
		mine("setup", "setup", t.setup),
		compiles(after(verify.Lint(l.Root), "setup")),
		compiles(after(verify.Unit(l), "setup")),
		compiles(after(verify.UpstreamValidation(l), "setup")),
		mine("build", "setup", t.build, "setup"),
		compiles(mine("generators leave the release as it is", "source", t.generators, "build")),
		after(verify.Gates(t.p.Series.Name, func() map[string]string { return t.result.Build.Binaries }), "build"),
		compiles(after(verify.RoundTrip(l, t.p.Series), "build")),
		compiles(after(verify.Upstreamable(l, t.openTree), "build")),
		compiles(after(verify.EachPatch(l, t.openTree), "build")),
		compiles(after(verify.Upstream(l, t.openTree, t.stockTree), "build")),
		mine("server tarball", "image", t.serverTarball, "build"),
		compiles(mine("kind builds from the server tarball", "image", t.kindBuilds, "server tarball")),
		mine("node image with plain kind", "image", t.plainKind, "build"),
		ownCluster(mine("cluster operations", "image", t.clusterOperations, "build")),
		mine("cluster", "setup", t.createCluster, "build"),
		mine("stories", "e2e", t.stories, "cluster"),
		mine("e2e", "e2e", t.e2e, "cluster"),
		mine("e2e relaxed names", "e2e", t.e2eRelaxed, "cluster"),
		mine("e2e variable expansion", "e2e", t.e2eExpansion, "cluster"),
		mine("e2e on a kubelet without an API server", "e2e", t.e2eStandalone, "cluster"),
		mine("upgrade, downgrade and skew", "upgrade", t.e2eUpgrade, "cluster"),
		mine("e2e with the gate off", "e2e", t.e2eGateOff, "cluster"),
		mine("down leaves nothing", "e2e", t.down, "cluster"),
	}
	if t.full {
		checks = append(checks, ownCluster(mine("up goes on after Ctrl-C", "e2e", t.interruptions, "build")))
	}
	return checks
}

func (t *testRun) openTree(context.Context) (*source.Tree, error) { return t.result.Tree, nil }

func (t *testRun) stockTree(ctx context.Context) (*source.Tree, error) {
	return source.Assemble(ctx, t.app.layout, t.p.Series, source.Options{Stock: true}, nil)
}

// quiet is the pipeline without lines of its own: a check is one line.
func (t *testRun) quiet() *pipeline.Pipeline {
	p := *t.p
	p.Reporter = nil
	return &p
}

// setup installs what is missing and sees that the host can do the rest.
func (t *testRun) setup(ctx context.Context, _ *progress.Step) ([]junit.Case, error) {
	if err := t.p.Packages(ctx, "shellcheck"); err != nil {
		return nil, err
	}
	if _, err := t.p.Engine(ctx); err != nil {
		return nil, err
	}
	var broken []string
	for _, f := range doctor.Examine(ctx, t.app.layout) {
		if f.Status == "fail" {
			broken = append(broken, fmt.Sprintf("%s: %s: %s", f.Check, f.Found, f.Remedy))
		}
	}
	if len(broken) > 0 {
		return nil, fmt.Errorf("podenv doctor finds:\n%s", strings.Join(broken, "\n"))
	}
	return nil, nil
}

// build goes to the node image; its steps have lines of their own.
func (t *testRun) build(ctx context.Context, _ *progress.Step) (_ []junit.Case, err error) {
	t.result, err = t.p.NodeImage(ctx)
	return nil, err
}

// generators runs all of the release's own generators on the stock release, where
// they must change nothing: only then is what they make of the patches upstream's.
func (t *testRun) generators(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	stock, err := t.stockTree(ctx)
	if err != nil {
		return nil, err
	}
	return verify.GoTest{
		Layout: t.app.layout, Name: "generators", Dir: t.app.layout.Root,
		Env:   []string{"PODENV_TREE=" + stock.Dir, "PODENV_RELEASE=" + stock.Series.Release},
		Flags: []string{"-count=1", "-timeout=20m", "-run=^TestAllGeneratorsLeaveTheReleaseAsItIs$", "podenv.dev/hack/internal/codegen"},
	}.Run(ctx, step)
}

func (t *testRun) serverTarball(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return nil, build.ServerTarball(ctx, t.app.layout, t.result.Build, t.tarball(), step)
}

func (t *testRun) tarball() string {
	return filepath.Join(t.result.Build.Dir, build.ServerTarballName)
}

// kindBuilds has kind make a node image of the server tarball, as it would of upstream's.
func (t *testRun) kindBuilds(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return nil, nodeimage.ProveServerTarball(ctx, t.app.layout, t.result.Engine, t.tarball(), t.result.Build.Version, step)
}

// plainKind proves the node image as anybody would use it.
func (t *testRun) plainKind(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return nil, nodeimage.Prove(ctx, t.app.layout, t.result.Engine, t.result.Image.Ref, t.result.TestImages, step)
}

// clusterOperations runs the tests of the cluster package that need a node image.
func (t *testRun) clusterOperations(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	gates, err := t.p.Gates()
	if err != nil {
		return nil, err
	}
	var flags []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		flags = append(flags, fmt.Sprintf("%s=%t", name, gates[name]))
	}
	return verify.GoTest{
		Layout: t.app.layout, Name: "cluster-operations", Dir: t.app.layout.Root,
		Env:   []string{"PODENV_NODE_IMAGE=" + t.result.Image.Ref, "PODENV_GATES=" + strings.Join(flags, ",")},
		Flags: []string{"-count=1", "-timeout=20m", "-run=^TestLive$", "podenv.dev/hack/internal/cluster"},
	}.Run(ctx, step)
}

// interruptions interrupts podenv up in each of its steps.
func (t *testRun) interruptions(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return verify.GoTest{
		Layout: t.app.layout, Name: "interruptions", Dir: t.app.layout.Root,
		Env:   []string{"PODENV_REPOSITORY=" + t.app.layout.Root, "SERIES=" + t.p.Series.Name},
		Flags: []string{"-count=1", "-timeout=30m", "-run=^TestLiveInterruptions$", "podenv.dev/hack/podenv"},
	}.Run(ctx, step)
}

func (t *testRun) createCluster(ctx context.Context, _ *progress.Step) (_ []junit.Case, err error) {
	gates, err := t.p.Gates()
	if err != nil {
		return nil, err
	}
	t.cluster, err = t.p.Cluster(ctx, t.result, cluster.Config{Name: testCluster, Workers: 1, Gates: gates})
	return nil, err
}

func (t *testRun) stories(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	told, err := stories.Run(ctx, stories.Options{Kubeconfig: t.cluster.Kubeconfig()}, step)
	var cases []junit.Case
	for _, story := range told {
		cases = append(cases, junit.Case{Name: story.Manifest, ClassName: "stories"})
	}
	return cases, err
}

// e2e runs the suite with the gates on: no spec may be skipped for want of one.
func (t *testRun) e2e(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return t.suite(ctx, step, suite.Options{Suite: "envfiles"})
}

func (t *testRun) e2eRelaxed(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return t.suite(ctx, step, suite.Options{Suite: "relaxed"})
}

func (t *testRun) e2eExpansion(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return t.suite(ctx, step, suite.Options{Suite: "expansion"})
}

// e2eStandalone takes a node away from the API server for a minute, so nothing runs
// beside it.
func (t *testRun) e2eStandalone(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	return t.suite(ctx, step, suite.Options{Suite: "standalone"})
}

// e2eUpgrade operates nodes, so no other suite runs beside it. What they are swapped to is
// built first: compiling is no part of a spec.
func (t *testRun) e2eUpgrade(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	most, filter := 1, "!Slow"
	if t.full {
		most, filter = series.SupportedSkew, ""
	}
	older, err := t.p.Series.Older(t.app.layout, most)
	if err != nil {
		return nil, err
	}
	type component struct{ build, name string }
	builds := []component{{"stock:" + t.p.Series.Name, "kube-apiserver"}, {"stock:" + t.p.Series.Name, "kubelet"}}
	for _, minor := range older {
		builds = append(builds, component{"stock:" + minor, "kubelet"})
	}
	for _, b := range builds {
		step.Now("building %s %s", b.name, b.build)
		if _, err := t.quiet().Component(ctx, b.build, b.name); err != nil {
			return nil, err
		}
	}
	podenv, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return t.suite(ctx, step, suite.Options{
		Suite: "upgrade", LabelFilter: filter, Procs: 1, Timeout: time.Hour,
		Podenv: podenv, Cluster: testCluster, Minor: t.p.Series.Name, Older: older,
	})
}

// e2eGateOff makes the cluster anew without the gates, and runs the specs that say
// what a cluster does then.
func (t *testRun) e2eGateOff(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	on, err := t.p.Gates()
	if err != nil {
		return nil, err
	}
	off := map[string]bool{}
	for gate := range on {
		off[gate] = false
	}
	if t.cluster, err = t.quiet().Cluster(ctx, t.result, cluster.Config{Name: testCluster, Workers: 1, Gates: off}); err != nil {
		return nil, err
	}
	var all []junit.Case
	for _, name := range []string{"envfiles", "relaxed", "expansion"} {
		cases, err := t.suite(ctx, step, suite.Options{
			Suite: name, Focus: "with the gate off",
			JUnit: filepath.Join(t.app.layout.Output(), "e2e", name+"-gate-off.xml"),
		})
		if err != nil {
			return all, err
		}
		all = append(all, cases...)
	}
	return all, nil
}

// suite returns the specs that ran or were to run; a spec that a filter leaves out
// is neither.
func (t *testRun) suite(ctx context.Context, step *progress.Step, o suite.Options) ([]junit.Case, error) {
	if o.Procs == 0 {
		o.Procs = e2eProcs
	}
	if o.Focus == "" {
		o.RequireGates = gatesOf(o.Suite)
	}
	o.Kubeconfig, o.Kubectl = t.cluster.Kubeconfig(), t.result.Build.Binaries["kubectl"]
	result, err := suite.Run(ctx, t.app.layout, o, step)
	if result.JUnit == "" {
		return nil, err
	}
	if result.Report != "" {
		t.p.Reporter.Print(strings.TrimSpace(result.Report))
	}
	cases, readErr := junit.Read(result.JUnit)
	if readErr != nil {
		return nil, readErr
	}
	if junit.Count(cases).Failed > 0 {
		err = nil // the cases say it
	}
	return cases, err
}

// down deletes the test cluster and looks for what is left of it.
func (t *testRun) down(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
	if t.keep {
		return []junit.Case{{Name: "down leaves nothing", Skipped: &junit.Message{Message: "--keep"}}}, nil
	}
	kubeconfig, name := t.cluster.Kubeconfig(), t.cluster.Context()
	if err := t.cluster.Delete(ctx, step); err != nil {
		return nil, err
	}
	t.cluster = nil
	left, err := t.result.Engine.Docker(ctx, "ps", "--all", "--format", "{{.Names}}", "--filter", "label=io.x-k8s.kind.cluster="+testCluster).Output()
	if err != nil {
		return nil, err
	}
	if left != "" {
		return nil, fmt.Errorf("containers are left: %s", left)
	}
	if _, err := os.Stat(kubeconfig); err == nil {
		return nil, fmt.Errorf("the kubeconfig is left: %s", kubeconfig)
	}
	return nil, errors.Join(noContext(name), t.noNetwork(ctx))
}

// noNetwork returns an error if there is a network of podenv's that nobody uses.
func (t *testRun) noNetwork(ctx context.Context) error {
	e := t.result.Engine
	ids, err := e.Docker(ctx, "network", "ls", "--quiet", "--filter", "label=podenv.dev/network").Output()
	if err != nil {
		return err
	}
	for _, id := range strings.Fields(ids) {
		users, err := e.Docker(ctx, "ps", "--all", "--quiet", "--filter", "network="+id).Output()
		if err != nil {
			return err
		}
		if users == "" {
			return fmt.Errorf("the network %s is left", id)
		}
	}
	return nil
}
