package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/testimages"
)

// releaseSpecs is the folder, in a tree, of the package with the release's own specs of env files,
// which releases from v1.34 on have.
const releaseSpecs = "test/e2e/common/node"

// fileKeySpecs runs the release's own specs of env files, unchanged, on the test cluster. Go
// compiles their package with one more file, which is not in the tree.
func fileKeySpecs(c *check) error {
	dir := filepath.Join(built.value.Tree.Dir, releaseSpecs)
	if _, err := os.Stat(filepath.Join(dir, "file_key.go")); errors.Is(err, os.ErrNotExist) {
		c.part("EnvFiles", func() error { return skipped("the release has no specs of env files") })
		return nil
	} else if err != nil {
		return err
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
		// No registry serves it here; what the specs run in it is in ours too.
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
		return nil // the cases say it
	case runErr == nil && counts.Passed == 0:
		return errors.New("no spec ran: the release has none with the label FeatureGate:EnvFiles")
	}
	return runErr
}

// writeOverlay writes a file for -overlay of Go commands, in the folder dir, that has them see the
// file at path as if it were at as.
func writeOverlay(dir, as, path string) (string, error) {
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {as: path}})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}
