package proof

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/run"
)

// policyVersions are the versions of MutatingAdmissionPolicy, each with the first minor whose API
// server has it.
var policyVersions = [][2]string{{"v1.36", "v1"}, {"v1.34", "v1beta1"}, {"v1.33", "v1alpha1"}}

// policies has an API server judge pods by PodPresets and by the policies that `kubectl podenv
// preset convert` writes of them, and shows what policies and webhooks do where a preset is in conflict.
func policies(c *check) error {
	env, err := injectEnv(built.value)
	if err != nil {
		return err
	}
	return c.countGoTest(repo.Root, env, "-skip=^TestMeasure$", injectPackage)
}

// TestInject measures the ways to inject into pods, in the Go benchmark format.
func TestInject(t *testing.T) {
	p, result := benchBuild(t)
	env, err := injectEnv(result)
	if err != nil {
		t.Fatal(err)
	}
	step := p.Reporter.Step("ways to inject")
	command := run.Command(ctx, "go", "test", "-count=1", "-run=^TestMeasure$", "-timeout=1h", injectPackage).Dir(repo.Root)
	if err := step.End(command.Env(append(env, "PODS=500", "RESULTS="+*benchFile)...).Log(step.Log()).Run()); err != nil {
		t.Error(err)
	}
}

// benchBuild builds what is measured, and makes the folder for the results.
func benchBuild(t *testing.T) (*pipeline.Pipeline, *pipeline.Result) {
	t.Helper()
	requireSeries(t)
	p, err := newPipeline(*seriesName)
	if err != nil {
		t.Fatal(err)
	}
	result, err := p.NodeImage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(*benchFile), 0o755); err != nil {
		t.Fatal(err)
	}
	return p, result
}

const injectPackage = "./test/bench/inject"

// injectEnv names the programs that the tests of injectPackage start.
func injectEnv(r *pipeline.Result) ([]string, error) {
	etcd, err := etcdProgram()
	if err != nil {
		return nil, err
	}
	for _, v := range policyVersions {
		if semver.Compare(r.Tree.Series.Name, v[0]) >= 0 {
			return []string{"KUBE_APISERVER=" + r.Build.Binaries["kube-apiserver"], "ETCD=" + etcd, "POLICY_VERSION=" + v[1]}, nil
		}
	}
	return nil, skipped(r.Tree.Series.Name + " has no MutatingAdmissionPolicy that was tried")
}

// etcdProgram returns etcd, of any version, as it was built for a node image.
func etcdProgram() (string, error) {
	built, err := filepath.Glob(filepath.Join(repo.Cache("support"), "bin", "*-etcd-*"))
	if err != nil {
		return "", err
	}
	if len(built) == 0 {
		return "", errors.New("no program of etcd is beside the images of the cluster")
	}
	return built[len(built)-1], nil
}
