package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/testimages"
)

// releaseSpecs is the directory, in a tree, of the package with the release's own specs of env
// files. Releases from v1.34 on have them.
const releaseSpecs = "test/e2e/common/node"

// fileKeySpecs runs the release's own specs of env files, unchanged, on the test cluster. An overlay
// adds a file with TestMain to their package.
func fileKeySpecs(c *check) error {
	dir := filepath.Join(built.value.Tree.Dir, releaseSpecs)
	if has, err := hasUpstreamEnvFiles(steps.Series.Name); err != nil {
		return err
	} else if !has {
		c.part("EnvFiles", func() error { return skipped("the release has no specs of env files") })
		return nil
	}
	overlay, err := writeOverlay(c.TempDir(), filepath.Join(dir, "podenv_test.go"), filepath.Join(repo.Root, "hack", "proof", "testdata", "filekeys_test.go"))
	if err != nil {
		return err
	}
	c.step.Now("compiling the specs")
	specs := filepath.Join(c.TempDir(), "specs")
	if err := c.command("go", "test", "-c", "-overlay="+overlay, "-o="+specs, "./"+releaseSpecs).Dir(built.value.Tree.Dir).Env(treeEnv...).Run(); err != nil {
		return err
	}
	image, err := c.command(specs, "-image").Output()
	if err != nil {
		return err
	}
	nodes, err := gatesOn.value.Nodes(c.ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		// No registry serves this image here. Ours has the commands that the specs run.
		if err := gatesOn.value.Docker(c.ctx, "exec", node.Name, "ctr", "--namespace=k8s.io", "images", "tag", "--force", testimages.Busybox, image).Run(); err != nil {
			return err
		}
	}
	c.step.Now("running the specs")
	results := filepath.Join(c.TempDir(), "results.xml")
	runErr := c.command(specs, "-kubeconfig="+gatesOn.value.Kubeconfig(), "-results="+results).Run()
	cases, err := junit.Read(results)
	if err != nil {
		return fmt.Errorf("the specs ended without results: %w", errors.Join(runErr, err))
	}
	c.count(cases)
	switch counts := junit.Count(cases); {
	case counts.Failed > 0:
		return nil // the cases are the error
	case runErr == nil && counts.Passed == 0:
		return errors.New("no spec ran: the release has none with the label FeatureGate:EnvFiles")
	}
	return runErr
}

// hasUpstreamEnvFiles reports whether the release of minor has env files without the patches, and so
// specs of them.
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

// writeOverlay writes a file for the flag -overlay of go commands to the directory dir. With it, go
// finds the content of the file source at the path target.
func writeOverlay(dir, target, source string) (string, error) {
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {target: source}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}
