package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/internal/progress"
)

// Kubeconfig is the path of a kubeconfig that has this cluster only.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// RESTConfig is the client configuration of the cluster's administrator.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	if _, err := os.Stat(c.Kubeconfig()); errors.Is(err, os.ErrNotExist) {
		// _output was deleted since.
		if err := c.writeKubeconfig(nil); err != nil {
			return nil, err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", c.name, err)
	}
	config.UserAgent = "podenv"
	config.QPS = -1 // no limit: the API server has its own
	return config, nil
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTime
	return kubernetes.NewForConfig(config)
}

// writeKubeconfig writes the cluster's own kubeconfig.
func (c *Cluster) writeKubeconfig(step *progress.Step) error {
	text, err := provider(step).KubeConfig(c.name, false)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig off cluster %s; if it is half-made, run `podenv up`: %w", c.name, explain(err))
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(c.Kubeconfig(), []byte(text), 0o600)
}

// exportKubeconfig writes the cluster's own kubeconfig and adds its context to the
// file at path.
func (c *Cluster) exportKubeconfig(path string, step *progress.Step) error {
	if err := c.writeKubeconfig(step); err != nil {
		return err
	}
	if err := provider(step).ExportKubeConfig(c.name, path, false); err != nil {
		return fmt.Errorf("adding cluster %s to %s: %w", c.name, path, explain(err))
	}
	return nil
}

// forgetKubeconfig takes the cluster out of the kubeconfigs: the recorded one and
// those that kubectl would use now. The nodes are gone, or kind would delete them.
func (c *Cluster) forgetKubeconfig(step *progress.Step) error {
	paths := clientcmd.NewDefaultPathOptions().GetLoadingPrecedence()
	if r := cmp.Or(c.record, readSaved(c.dir)); r != nil {
		paths = append(paths, r.Kubeconfig)
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err != nil {
			continue // kind would make its folder
		}
		if err := provider(step).Delete(c.name, path); err != nil {
			return fmt.Errorf("taking cluster %s out of the kubeconfig: %w", c.name, explain(err))
		}
	}
	return nil
}
