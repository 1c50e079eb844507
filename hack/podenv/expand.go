package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"

	"podenv.dev/hack/operator/expand"
)

// expandOptions are the flags of expand.
type expandOptions struct {
	files               []string
	output              string
	kubeconfig, context string
	namespace           string
	showSecrets, strict bool
	gates               map[string]bool
}

func newExpand(a *app) *cobra.Command {
	var o expandOptions
	cmd := &cobra.Command{
		Use:   "expand -f FILE",
		Short: "Show what a pod's containers start with: env, command and args, expanded",
		Long: `expand reads pods and workloads from YAML or JSON and prints each container's env,
command and args as the kubelet would make them. It says which references stay
unexpanded and why:

  !  stays unexpanded (declared later, misspelt, not declared), or cannot start
  ?  not known here: it depends on the cluster, or on what runs
  -  not set, because it is optional
  ~  hides the variable of a service

It contacts a cluster only if given --kubeconfig or --context, and then reads
ConfigMaps, Secrets and services. ConfigMaps and Secrets in the files themselves
come first. The values of Secrets are shown as ***.

The kubelet makes variables of keys such as 1A (envFrom) only with its gate
RelaxedEnvironmentVariableValidation on: --feature-gates says whether it is.

Exit status: 0 if every reference is expanded, as far as is known; 1 if one stays
unexpanded or a container cannot start, and with --strict also if anything is
unknown; 2 for a wrong command line, or a file or cluster that cannot be read.`,
		Example: `  podenv expand -f pod.yaml
  podenv expand -f pod.yaml --kubeconfig ~/.kube/config --namespace shop
  kustomize build . | podenv expand -f - --output json | jq '.[].containers[].env'`,
		Args: noArgs,
		// A manifest is anywhere: no checkout is needed.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.expand(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "a manifest, - for standard input; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the cluster to read from (default none)")
	flags.StringVar(&o.context, "context", "", "the kubeconfig's context (default its current one)")
	flags.StringVarP(&o.namespace, "namespace", "n", "", `of objects that name none (default the context's, or "default")`)
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "show the values of Secrets")
	flags.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates", relaxedGate+"=true or =false, as the kubelet has it (default not known)")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 also if anything is unknown")
	return cmd
}

const relaxedGate = "RelaxedEnvironmentVariableValidation"

// relaxedNames is what --feature-gates says of relaxedGate; nil if nothing.
func (o *expandOptions) relaxedNames() (*bool, error) {
	var relaxed *bool
	for gate, on := range o.gates {
		if gate != relaxedGate {
			return nil, &usageError{fmt.Errorf("--feature-gates %s: only %s changes what expand shows", gate, relaxedGate)}
		}
		relaxed = &on
	}
	return relaxed, nil
}

func (a *app) expand(cmd *cobra.Command, o expandOptions) error {
	write, ok := map[string]func(io.Writer, []expand.Pod) error{"table": expand.WriteTable, "json": expand.WriteJSON}[o.output]
	if !ok {
		return &usageError{fmt.Errorf("--output %q: choose table or json", o.output)}
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
	bad := expand.Count(pods, expand.Unexpanded) + expand.Count(pods, expand.Fails)
	if o.strict {
		bad += expand.Count(pods, expand.Unknown)
	}
	if bad > 0 {
		return errReported
	}
	return nil
}

// pods reads the files and, if asked to, the cluster.
func (o *expandOptions) pods(cmd *cobra.Command) ([]expand.Pod, error) {
	manifest, err := o.manifest(cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	client, namespace, err := o.cluster()
	if err != nil {
		return nil, err
	}
	if o.namespace != "" {
		namespace = o.namespace
	}
	relaxed, err := o.relaxedNames()
	if err != nil {
		return nil, err
	}
	return expand.Pods(cmd.Context(), manifest, expand.Options{
		Client: client, Namespace: namespace, ShowSecrets: o.showSecrets, RelaxedNames: relaxed,
	})
}

func (o *expandOptions) manifest(stdin io.Reader) (*expand.Manifest, error) {
	if len(o.files) == 0 {
		return nil, errors.New("which manifest? give a file with -f, or -f - for standard input")
	}
	var manifest expand.Manifest
	for _, name := range o.files {
		if name == "-" {
			if err := manifest.Read("standard input", stdin); err != nil {
				return nil, err
			}
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = manifest.Read(name, file)
		file.Close()
		if err != nil {
			return nil, err
		}
	}
	return &manifest, nil
}

// cluster returns a nil client if no cluster was asked for, and the namespace of
// objects that name none.
func (o *expandOptions) cluster() (kubernetes.Interface, string, error) {
	if o.kubeconfig == "" && o.context == "" {
		return nil, "default", nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest)
	return client, namespace, err
}
