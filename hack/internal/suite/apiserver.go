package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// versionTimeout is how long an API server may take to return its version.
const versionTimeout = 10 * time.Second

// checkAPIServer returns an error, with what to do about it, unless the API server of the
// kubeconfig answers.
func checkAPIServer(ctx context.Context, kubeconfig, kubecontext string) error {
	if kubeconfig == "" {
		return errors.New("no kubeconfig: give one with --kubeconfig, or make a cluster with `podenv up`")
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		return fmt.Errorf("kubeconfig: %w; give another with --kubeconfig, or make a cluster with `podenv up`", err)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: kubecontext}).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w; `kubectl --kubeconfig %[1]s config get-contexts` lists what it has", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return fmt.Errorf("the API server %s of kubeconfig %s does not answer: %w; is the cluster up? `podenv up` makes one", config.Host, kubeconfig, err)
	}
	return nil
}
