package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/internal/progress"
)

// Kubeconfig returns the path of a kubeconfig that has only this cluster.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// RESTConfig returns the client configuration of the cluster's administrator.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	if _, err := os.Stat(c.Kubeconfig()); errors.Is(err, os.ErrNotExist) {
		// _output was deleted.
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

// Client returns a client of the cluster's administrator with a timeout for its requests.
func (c *Cluster) Client() (kubernetes.Interface, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = requestTimeout
	return kubernetes.NewForConfig(config)
}

// writeKubeconfig writes the cluster's own kubeconfig.
func (c *Cluster) writeKubeconfig(step *progress.Step) error {
	text, err := provider(step).KubeConfig(c.name, false)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of cluster %s; if it is half-made, run `%s`: %w", c.name, c.command("up"), explain(err))
	}
	return errors.Join(os.MkdirAll(c.dir, 0o755), renameio.WriteFile(c.Kubeconfig(), []byte(text), 0o600))
}

// exportKubeconfig writes the cluster's own kubeconfig, and makes its context the current one
// in the kubeconfig that kubectl uses. The record, which it does not save, has the previous one.
func (c *Cluster) exportKubeconfig(step *progress.Step) error {
	if err := c.writeKubeconfig(step); err != nil {
		return err
	}
	path, err := filepath.Abs(clientcmd.NewDefaultPathOptions().GetDefaultFilename())
	if err != nil {
		return err
	}
	_, known := c.record.PreviousContexts[path]
	if before := currentContext(path); !known || before != c.Context() {
		if c.record.PreviousContexts == nil {
			c.record.PreviousContexts = map[string]string{}
		}
		c.record.PreviousContexts[path] = before
	}
	if err := provider(step).ExportKubeConfig(c.name, path, false); err != nil {
		return fmt.Errorf("adding cluster %s to %s: %w", c.name, path, explain(err))
	}
	return nil
}

func currentContext(path string) string {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// removeFromKubeconfigs removes the cluster from the recorded kubeconfigs, where it also
// restores the previous contexts, and from those that kubectl would use now. It must run after
// the nodes are deleted, or kind would delete them.
func (c *Cluster) removeFromKubeconfigs(step *progress.Step) error {
	r := cmp.Or(c.record, readRecordFile(c.dir), &record{})
	for _, path := range slices.Concat(slices.Sorted(maps.Keys(r.PreviousContexts)), clientcmd.NewDefaultPathOptions().GetLoadingPrecedence()) {
		if _, err := os.Stat(path); err != nil {
			continue // kind would create its folder
		}
		isCurrent := currentContext(path) == c.Context()
		if err := provider(step).Delete(c.name, path); err != nil {
			return fmt.Errorf("taking cluster %s out of the kubeconfig: %w", c.name, explain(err))
		}
		if previous := r.PreviousContexts[path]; isCurrent && previous != "" {
			if err := useContext(path, previous); err != nil {
				return fmt.Errorf("going back to the context %s in %s: %w", previous, path, err)
			}
		}
	}
	return nil
}

// useContext makes the context called name the current one if the kubeconfig at path has it.
func useContext(path, name string) error {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || config.Contexts[name] == nil {
		return err
	}
	config.CurrentContext = name
	return clientcmd.WriteToFile(*config, path)
}
