package proof

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/cluster"
)

// oldClientEnv is the environment of go commands in test/oldclient, a module of its own with
// client-go of v1.19, the last one with PodPreset.
var oldClientEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}

func oldClientDir() string { return filepath.Join(repo.Root, "test", "oldclient") }

// oldClient uses presets of the test cluster with client-go of v1.19, in JSON and in protobuf, and
// reads and writes them in etcd with its types.
func oldClient(c *check) error {
	url, pki, err := etcdOf(c.ctx, gatesOn.value, c.TempDir())
	if err != nil {
		return err
	}
	return c.countGoTest(oldClientDir(), oldClientEnv, "-run=^Test(OldClient|Etcd)$", ".", "-args",
		"-kubeconfig="+gatesOn.value.Kubeconfig(), "-etcd="+url, "-etcd-pki="+pki)
}

// etcdOf returns the URL of a cluster's etcd, and the directory in dir with its certificates.
func etcdOf(ctx context.Context, c *cluster.Cluster, dir string) (url, pki string, err error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return "", "", err
	}
	controlPlane := nodes[0].Name
	address, err := c.Docker(ctx, "inspect", "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", controlPlane).Output()
	if err != nil {
		return "", "", err
	}
	err = c.Docker(ctx, "cp", controlPlane+":/etc/kubernetes/pki/etcd", dir).Run()
	return "https://" + net.JoinHostPort(address, "2379"), filepath.Join(dir, "etcd"), err
}

// oldFixtures checks the types of the tree against the PodPresets that k8s.io/api of v1.19 has as
// JSON, YAML and protobuf. An overlay adds the test to the package in the tree, which does not
// change.
func oldFixtures(c *check) error {
	fixtures := c.TempDir()
	if err := c.countGoTest(oldClientDir(), oldClientEnv, "-run=^TestFixtures$", ".", "-args", "-out="+fixtures); err != nil {
		return err
	}
	tree := built.value.Tree.Dir
	overlay, err := writeOverlay(c.TempDir(), filepath.Join(tree, "staging", "src", "k8s.io", "api", "settings", "v1alpha1", "fixtures_test.go"),
		filepath.Join(oldClientDir(), "testdata", "fixtures_test.go"))
	if err != nil {
		return err
	}
	return c.countGoTest(tree, append([]string{"PODPRESET_FIXTURES=" + fixtures}, treeEnv...), "-overlay="+overlay, "k8s.io/api/settings/v1alpha1")
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
