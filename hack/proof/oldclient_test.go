package proof

import (
	"context"
	"net"
	"path/filepath"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/cluster"
)

// oldClientEnv is how Go commands run in test/oldclient, a module of its own: client-go of
// v1.19, the last one with PodPreset.
var oldClientEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}

func oldClientDir() string { return filepath.Join(repo.Root, "test", "oldclient") }

// requirePodPreset skips a check, as a part of it, for a series that lacks the feature.
func requirePodPreset(c *check) (bool, error) {
	gates, err := steps.Gates()
	if err != nil || gates[string(featuregates.PodPreset)] {
		return err == nil, err
	}
	c.part("PodPreset", func() error { return skipped("the series does not carry it yet") })
	return false, nil
}

// oldClient has client-go of v1.19 use presets of the test cluster, in JSON and in protobuf, and
// its types read and write what is in etcd.
func oldClient(c *check) error {
	if ok, err := requirePodPreset(c); !ok {
		return err
	}
	url, pki, err := etcdOf(c.ctx, gatesOn.value, c.TempDir())
	if err != nil {
		return err
	}
	return c.countGoTest(oldClientDir(), oldClientEnv, "-count=1", "-run=^Test(OldClient|Etcd)$", ".", "-args",
		"-kubeconfig="+gatesOn.value.Kubeconfig(), "-etcd="+url, "-etcd-pki="+pki)
}

// etcdOf returns the URL of a cluster's etcd and the folder, in dir, with the certificates for it.
func etcdOf(ctx context.Context, of *cluster.Cluster, dir string) (url, pki string, err error) {
	nodes, err := of.Nodes(ctx)
	if err != nil {
		return "", "", err
	}
	controlPlane := nodes[0].Name
	address, err := of.Docker(ctx, "inspect", "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", controlPlane).Output()
	if err != nil {
		return "", "", err
	}
	err = of.Docker(ctx, "cp", controlPlane+":/etc/kubernetes/pki/etcd", dir).Run()
	return "https://" + net.JoinHostPort(address, "2379"), filepath.Join(dir, "etcd"), err
}

// oldFixtures holds the types of the tree to the PodPresets that k8s.io/api of v1.19 keeps as
// JSON, YAML and protobuf. Go compiles the test as a part of the package in the tree, which
// stays as it is.
func oldFixtures(c *check) error {
	if ok, err := requirePodPreset(c); !ok {
		return err
	}
	fixtures := c.TempDir()
	if err := c.countGoTest(oldClientDir(), oldClientEnv, "-count=1", "-run=^TestFixtures$", ".", "-args", "-out="+fixtures); err != nil {
		return err
	}
	tree := built.value.Tree.Dir
	overlay, err := writeOverlay(c.TempDir(), filepath.Join(tree, "staging", "src", "k8s.io", "api", "settings", "v1alpha1", "fixtures_test.go"),
		filepath.Join(oldClientDir(), "testdata", "fixtures_test.go"))
	if err != nil {
		return err
	}
	return c.countGoTest(tree, append([]string{"PODPRESET_FIXTURES=" + fixtures}, treeEnv...), "-count=1", "-overlay="+overlay, "k8s.io/api/settings/v1alpha1")
}
