package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// manifestFlags are the flags of verbs that read manifests and, optionally, a cluster.
type manifestFlags struct {
	files               []string
	kubeconfig, context string
	namespace           string
}

func (m *manifestFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&m.files, "filename", "f", nil, "a manifest, - for standard input; may be repeated")
	flags.StringVar(&m.kubeconfig, "kubeconfig", "", "the cluster to read from (default none)")
	flags.StringVar(&m.context, "context", "", "the kubeconfig's context (default its current one)")
	flags.StringVarP(&m.namespace, "namespace", "n", "", `of objects that name none (default the context's, or "default")`)
}

// manifestReader reads the objects that it needs from a file.
type manifestReader interface {
	Read(name string, file io.Reader) error
}

// read passes every file to each of readers.
func (m *manifestFlags) read(stdin io.Reader, readers ...manifestReader) error {
	if len(m.files) == 0 {
		return errors.New("which manifest? give a file with -f, or -f - for standard input")
	}
	for _, name := range m.files {
		var text []byte
		var err error
		if name == "-" {
			name = "standard input"
			text, err = io.ReadAll(stdin)
		} else {
			text, err = os.ReadFile(name)
		}
		if err != nil {
			return err
		}
		for _, r := range readers {
			if err := r.Read(name, bytes.NewReader(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// cluster returns the client configuration, which is nil without --kubeconfig and --context, and
// the namespace of objects that name none.
func (m *manifestFlags) cluster() (*rest.Config, string, error) {
	namespace := "default"
	var config *rest.Config
	if m.kubeconfig != "" || m.context != "" {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = m.kubeconfig
		loading := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: m.context})
		var err error
		if namespace, _, err = loading.Namespace(); err == nil {
			config, err = loading.ClientConfig()
		}
		if err != nil {
			return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
		}
	}
	if m.namespace != "" {
		namespace = m.namespace
	}
	return config, namespace, nil
}
