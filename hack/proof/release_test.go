package proof

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/conformance"
)

// touchedSpecs matches the names of the specs of the conformance suite for what the branch touches, and
// those of env files: the release's own from v1.34 on, before that what the patches add to its test/e2e.
const touchedSpecs = `(\[sig-node\] (ConfigMap|Containers|Downward API|Ephemeral Containers|InitContainer|Pods|PodTemplates|Secrets|Variable Expansion) ` +
	`|\[sig-storage\] (ConfigMap|Secrets) |\[sig-apps\] StatefulSet ).*\[Conformance\]|\[FeatureGate:EnvFiles\]`

// releaseSpecs runs these specs of the release, unchanged, on the test cluster.
func releaseSpecs(c *check) error {
	specs, images, err := quiet().Specs(c.ctx, built.value.Build)
	if err != nil {
		return err
	}
	if err := gatesOn.value.LoadImages(c.ctx, []string{images}, c.step); err != nil {
		return err
	}
	client, err := gatesOn.value.Client()
	if err != nil {
		return err
	}
	c.step.Now("running the specs")
	rows, err := conformance.Run(c.ctx, client, conformance.Options{
		Dir: filepath.Join(repo.Output(), "e2e", "release"), Specs: specs, Cluster: testCluster,
		Kubeconfig: gatesOn.value.Kubeconfig(), Kubectl: built.value.Build.Binaries["kubectl"],
		Focus: touchedSpecs, Runs: []string{conformance.Parallel}, Procs: 4, Timeout: 20 * time.Minute, Again: true,
	}, nil)
	for _, row := range rows {
		c.part(row.Spec, func() error {
			switch row.State {
			case conformance.Failed:
				return errors.New(row.Why)
			case conformance.LeftOut:
				return skipped(row.Why)
			}
			return nil
		})
	}
	return err
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
