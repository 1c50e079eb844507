package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/operator/expand"
	"podenv.dev/hack/operator/preset"
)

// expandOptions are the flags of expand.
type expandOptions struct {
	manifestFlags
	output                       string
	presets, showSecrets, strict bool
	gates                        map[string]bool
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
  ?  unknown: it depends on the cluster, or on what runs
  -  not set, because it is optional
  ~  hides the variable of a service

It contacts a cluster only with --kubeconfig or --context, and then reads
ConfigMaps, Secrets and services. ConfigMaps and Secrets in the files themselves
come first. The values of Secrets are shown as ***.

With --presets the PodPresets of the files, and of the cluster, are injected first, as
kubectl podenv preset shows in more detail. A preset in conflict with a pod is shown, and left
out.

A kubelet of v1.29 makes variables of keys such as 1A (envFrom) only with its gate
RelaxedEnvironmentVariableValidation on: --feature-gates says whether it is. Later ones
always do, and expand sees in the cluster's version which it has.

Exit status: 0 if every reference is expanded or unknown; 1 if one stays unexpanded
or a container cannot start; with --strict, also 1 if anything is unknown; 2 for a wrong command line, or a file or cluster that cannot be read.`,
		Example: `  kubectl podenv expand -f pod.yaml
  kubectl podenv expand -f pod.yaml --kubeconfig ~/.kube/config --namespace shop
  kubectl podenv expand -f pod.yaml -f presets.yaml --presets
  kustomize build . | kubectl podenv expand -f - --output json | jq '.[].containers[].env'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.expand(cmd, o)
		},
	}
	flags := cmd.Flags()
	o.add(flags)
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.BoolVar(&o.presets, "presets", false, "inject the PodPresets of the files and of the cluster first")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "show the values of Secrets")
	flags.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates", relaxedGate+"=true or =false, as the kubelet has it (default not known)")
	flags.BoolVar(&o.strict, "strict", false, "exit with 1 also if anything is unknown")
	return cmd
}

const relaxedGate = "RelaxedEnvironmentVariableValidation"

// relaxedNames returns the value of relaxedGate in --feature-gates; nil if it is not set.
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

// pods reads the files and, with --kubeconfig or --context, the cluster.
func (o *expandOptions) pods(cmd *cobra.Command) ([]expand.Pod, error) {
	relaxed, err := o.relaxedNames()
	if err != nil {
		return nil, err
	}
	var manifest expand.Manifest
	var presets preset.Manifest
	readers := []manifestReader{&manifest}
	if o.presets {
		readers = append(readers, &presets)
	}
	if err := o.read(cmd.InOrStdin(), readers...); err != nil {
		return nil, err
	}
	source, err := o.presetOptions()
	if err != nil {
		return nil, err
	}
	if source.Client != nil {
		server, err := source.Client.Discovery().ServerVersion()
		if err != nil {
			return nil, fmt.Errorf("reading the version of the API server: %w", err)
		}
		if v, err := version.ParseGeneric(server.GitVersion); err == nil && v.AtLeast(version.MajorMinor(1, 30)) {
			relaxed = ptr.To(true)
		}
	}
	options := expand.Options{Client: source.Client, Namespace: source.Namespace, ShowSecrets: o.showSecrets, RelaxedNames: relaxed}
	if o.presets {
		options.Presets = preset.NewInjector(&presets, source)
	}
	return expand.Pods(cmd.Context(), &manifest, options)
}
