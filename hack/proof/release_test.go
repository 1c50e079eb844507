package proof

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/testutil"
)

// releaseCluster is the cluster of the specs of the release.
var releaseCluster = layout.MustFind().UniqueName("podenv-release")

// touchedSpecs matches the names of the specs of the conformance suite for what the branch touches, and
// those of env files: the release's own from v1.34 on, before that what the patches add to its test/e2e.
const touchedSpecs = `(\[sig-node\] (ConfigMap|Containers|Downward API|Ephemeral Containers|InitContainer|Pods|PodTemplates|Secrets|Variable Expansion) ` +
	`|\[sig-storage\] (ConfigMap|Secrets) |\[sig-apps\] StatefulSet ).*\[Conformance\]|\[FeatureGate:EnvFiles\]`

// slowSpecs matches those of them that need minutes and say little of what the branch touches.
const slowSpecs = `StatefulSet.*(Scaling should happen in predictable order|Burst scaling)`

// envFilesLabel is the label of the specs of env files, as it stands in their names.
const envFilesLabel = "[FeatureGate:EnvFiles]"

// releaseSpecs runs these specs of the release, unchanged, on a cluster of its own with two workers.
func releaseSpecs(c *check) (err error) {
	specs, images, err := quiet().Specs(c.ctx, built.value.Build)
	if err != nil {
		return err
	}
	gates, err := steps.Gates()
	if err != nil {
		return err
	}
	own, err := quiet().Cluster(c.ctx, built.value, cluster.Config{Name: releaseCluster, Workers: 2, Gates: gates, Recreate: true})
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := c.whatever()
		defer cancel()
		err = errors.Join(err, own.Delete(clean, c.step))
	}()
	if err := own.LoadImages(c.ctx, []string{images}, c.step); err != nil {
		return err
	}
	client, err := own.Client()
	if err != nil {
		return err
	}
	var skip []string
	if !*full {
		skip = []string{slowSpecs}
	}
	c.step.Now("running the specs")
	options := conformance.Options{
		Dir: filepath.Join(repo.Output(), "e2e", "release"), Specs: specs, Cluster: releaseCluster,
		Kubeconfig: own.Kubeconfig(), Kubectl: built.value.Build.Binaries["kubectl"],
		Focus: touchedSpecs, Skip: skip, Runs: []string{conformance.Parallel}, Procs: 6, Timeout: 20 * time.Minute, Again: true,
	}
	rows, err := conformance.Run(c.ctx, client, options, nil)
	if err == nil && slices.ContainsFunc(rows, func(row conformance.Row) bool { return row.State == conformance.Failed }) {
		options.Again = false // those that failed, once more
		rows, err = conformance.Run(c.ctx, client, options, nil)
	}
	for _, row := range rows {
		if row.State == conformance.Flaky {
			steps.Reporter.Print("        flaky: " + row.Spec + ": " + row.Why)
		}
		c.part(row.Spec, func() error { return resultOfSpec(row) })
	}
	if err != nil {
		return err
	}
	return envFilesPassed(rows)
}

// resultOfSpec is the error of a spec that has not passed. None may leave itself out: the cluster has what
// each needs. One of the conformance suite may pass the second time, as in a conformance run; one of env
// files has to pass at once.
func resultOfSpec(row conformance.Row) error {
	switch row.State {
	case conformance.Passed:
		return nil
	case conformance.Flaky:
		if !strings.Contains(row.Spec, envFilesLabel) {
			return nil
		}
	case conformance.LeftOut:
		return fmt.Errorf("must run, and was left out: %s", row.Why)
	}
	return errors.New(row.Why)
}

// envFilesPassed returns an error if no spec of env files passed. Every series has some, with a label that
// a new release could rename.
func envFilesPassed(rows []conformance.Row) error {
	if !slices.ContainsFunc(rows, func(row conformance.Row) bool {
		return row.State == conformance.Passed && strings.Contains(row.Spec, envFilesLabel)
	}) {
		return fmt.Errorf("no spec with the label %s passed: has the release renamed it?", envFilesLabel)
	}
	return nil
}

func TestEverySpecOfTheReleaseMustRun(t *testing.T) {
	pod := conformance.Row{Spec: "[sig-node] Pods should [Conformance]", State: conformance.Passed}
	file := conformance.Row{Spec: "[sig-node] FileKeyRef [FeatureGate:EnvFiles] [Beta] should", State: conformance.Passed}
	leftOut, failed := file, file
	leftOut.State, leftOut.Why = conformance.LeftOut, "not on this cluster"
	failed.State, failed.Why = conformance.Failed, "timed out"
	for want, row := range map[string]conformance.Row{"": file, "left out: not on this cluster": leftOut, "timed out": failed} {
		testutil.CheckError(t, resultOfSpec(row), want)
	}
	pod.State, file.State, file.Why = conformance.Flaky, conformance.Flaky, "failed before: timed out"
	testutil.CheckError(t, resultOfSpec(pod), "")
	testutil.CheckError(t, resultOfSpec(file), file.Why)
	pod.State, file.State = conformance.Passed, conformance.Passed
	const none = "no spec with the label [FeatureGate:EnvFiles] passed"
	testutil.CheckError(t, envFilesPassed([]conformance.Row{pod, file}), "")
	testutil.CheckError(t, envFilesPassed([]conformance.Row{pod}), none)
	testutil.CheckError(t, envFilesPassed([]conformance.Row{pod, leftOut, failed}), none)
	if !regexp.MustCompile(touchedSpecs).MatchString(file.Spec) {
		t.Errorf("the focus does not select %s", file.Spec)
	}
}

// hasUpstreamEnvFiles reports whether the release of minor has env files without the patches.
func hasUpstreamEnvFiles(minor string) (bool, error) {
	stock, err := featuregates.EnabledInStock(minor)
	return stock[string(featuregates.EnvFiles)], err
}

func TestHasUpstreamEnvFiles(t *testing.T) {
	for minor, want := range map[string]bool{"v1.29": false, "v1.33": false, "v1.34": true, "v1.37": true} {
		if got, err := hasUpstreamEnvFiles(minor); got != want || err != nil {
			t.Errorf("%s: %t, %v; want %t", minor, got, err, want)
		}
	}
}
