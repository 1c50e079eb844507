package proof

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

// noContext returns an error if the user's kubeconfig has a context called name.
func noContext(name string) error {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return err
	}
	if _, ok := config.Contexts[name]; ok {
		return fmt.Errorf("the kubeconfig still has the context %s", name)
	}
	return nil
}
