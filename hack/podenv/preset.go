package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/operator/preset"
)

// presetOptions are the flags of preset.
type presetOptions struct {
	files               []string
	output              string
	kubeconfig, context string
	namespace           string
}

func newPreset(a *app) *cobra.Command {
	var o presetOptions
	cmd := &cobra.Command{
		Use:   "preset -f FILE",
		Short: "Show what PodPresets inject into a pod, and which are in conflict with it",
		Long: `preset reads pods and workloads from YAML or JSON and prints which PodPresets the
API server would inject into them, and why it would leave out others. It decides as
the admission plugin does, by the same code.

PodPresets, ConfigMaps and Secrets in the files count. With --kubeconfig or --context
those of the cluster count too, and come first: presets are applied from oldest to
newest. Nothing is changed, and no value is printed but with --output json, whose
"result" is the pod as it would be created.

Exit status: 0 if no preset is in conflict; 1 if one is; 2 for a wrong command line,
or a file or cluster that cannot be read.`,
		Example: `  podenv preset -f pod.yaml -f presets.yaml
  podenv preset -f deployment.yaml --kubeconfig ~/.kube/config --namespace shop
  podenv preset -f pod.yaml -f presets.yaml --output json | jq '.[].result'`,
		Args: noArgs,
		// A manifest is anywhere: no checkout is needed.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.preset(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest, - for standard input; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the cluster to read from (default none)")
	flags.StringVar(&o.context, "context", "", "the kubeconfig's context (default its current one)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", `of objects that name none (default the context's, or "default")`)
	return cmd
}

func (a *app) preset(cmd *cobra.Command, o presetOptions) error {
	write, ok := map[string]func(io.Writer, []preset.Pod) error{"text": preset.WriteText, "json": preset.WriteJSON}[o.output]
	if !ok {
		return &usageError{fmt.Errorf("--output %q: choose text or json", o.output)}
	}
	pods, err := o.pods(cmd)
	if err != nil {
		if cmd.Context().Err() != nil {
			return err
		}
		return &usageError{err}
	}
	if err := write(a.out, pods); err != nil {
		return err
	}
	if preset.InConflict(pods) > 0 {
		return errReported
	}
	return nil
}

// pods reads the files and, if asked to, the cluster.
func (o *presetOptions) pods(cmd *cobra.Command) ([]preset.Pod, error) {
	if len(o.files) == 0 {
		return nil, errors.New("which manifest? give a file with -f, or -f - for standard input")
	}
	var manifest preset.Manifest
	for _, name := range o.files {
		if err := readManifest(&manifest, name, cmd.InOrStdin()); err != nil {
			return nil, err
		}
	}
	options := preset.Options{Namespace: "default"}
	if o.kubeconfig != "" || o.context != "" {
		if err := o.cluster(&options); err != nil {
			return nil, err
		}
	}
	if o.namespace != "" {
		options.Namespace = o.namespace
	}
	return preset.Pods(cmd.Context(), &manifest, options)
}

func readManifest(m *preset.Manifest, name string, stdin io.Reader) error {
	if name == "-" {
		return m.Read("standard input", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return m.Read(name, file)
}

// cluster fills in the clients and the namespace.
func (o *presetOptions) cluster(options *preset.Options) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	namespace, _, err := config.Namespace()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	options.Namespace = namespace
	if options.Client, err = kubernetes.NewForConfig(rest); err != nil {
		return err
	}
	options.Dynamic, err = dynamic.NewForConfig(rest)
	return err
}
