package proof

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/gobuild"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

var (
	scaleNodes  = flag.Int("podenv.nodes", 1000, "simulated nodes")
	scaleRounds = flag.Int("podenv.rounds", 3, "rounds of eight runs")
)

// runOfRuns is a line of the benchmark about where it is.
var runOfRuns = regexp.MustCompile(`run \d+ of \d+: \S+`)

// noHeartbeats has simulated nodes stay ready: their heartbeats would hide what is measured.
const noHeartbeats = `kind: ClusterConfiguration
controllerManager:
  extraArgs:
    node-monitor-grace-period: 24h0m0s
`

// TestScale measures an API server that has many nodes, which KWOK simulates, in the Go benchmark format.
func TestScale(t *testing.T) {
	p, result := benchBuild(t)
	programs, kwok, step := repo.Cache("programs"), filepath.Join(repo.Root, "hack/proof/tools/kwok"), p.Reporter.Step("kwok")
	for name, program := range map[string]gobuild.Program{
		"kwok": {Dir: "hack/proof/tools/kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}, "kubectl-podenv": {Package: "./hack/kubectl-podenv"},
	} {
		if err := gobuild.Static(ctx, repo, program, filepath.Join(programs, name), step); err != nil {
			t.Fatal(step.End(err))
		}
	}
	stages, err := run.Command(ctx, "go", "list", "-m", "-f={{.Dir}}/kustomize/stage", "sigs.k8s.io/kwok").Dir(kwok).Output()
	if err := step.End(err); err != nil {
		t.Fatal(err)
	}
	added := filepath.Join(t.ArtifactDir(), "added")
	if err := writeAdded(result.Tree, added); err != nil {
		t.Fatal(err)
	}
	c, err := p.Cluster(ctx, result, cluster.Config{
		Name: harnessCluster, Workers: 1, Recreate: true, Kind: &v1alpha4.Cluster{KubeadmConfigPatches: []string{noHeartbeats}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // also after Ctrl-C
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if err := c.Delete(clean, p.Reporter.Step("clean up")); err != nil {
			t.Error(err)
		}
	}()
	step = p.Reporter.Step("scale")
	command := run.Command(ctx, "go", "test", "-count=1", "-v", "-timeout=6h", "./test/bench/scale", "-args", "-kubeconfig="+c.Kubeconfig(), "-results="+*benchFile,
		"-podenv="+*podenv, "-name="+c.Name(), "-series="+*seriesName, "-programs="+programs, "-stages="+stages, "-added="+added,
		fmt.Sprintf("-nodes=%d", *scaleNodes), fmt.Sprintf("-rounds=%d", *scaleRounds))
	if err := step.End(command.Dir(repo.Root).Log(io.MultiWriter(step.Log(), run.Lines(func(line string) {
		if found := runOfRuns.FindString(line); found != "" {
			step.Now("%s", found)
		}
	}))).Run()); err != nil {
		t.Error(err)
	}
}

// writeAdded lists the Go files that the patches add to a release, in a file.
func writeAdded(t *source.Tree, file string) error {
	release, _, err := t.Release(ctx)
	if err != nil {
		return err
	}
	list, err := gitrepo.Repo{Dir: t.Dir}.Quiet(ctx, "diff", "--diff-filter=A", "--name-only", release, "HEAD", "--", "*.go")
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(list), 0o644)
}
