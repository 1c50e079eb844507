package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/operator/preset"
)

// presetOptions are the flags of preset.
type presetOptions struct {
	manifestFlags
	output           string
	noServiceAccount bool
}

func newPreset(a *app) *cobra.Command {
	var o presetOptions
	cmd := &cobra.Command{
		Use:   "preset -f FILE",
		Short: "Show what PodPresets inject into a pod, and which are in conflict with it",
		Long: `preset prints which PodPresets the API server would inject into pods and workloads, and why
it would leave out others, by the admission plugin's own code. It cannot know a label whose value a
controller makes, such as pod-template-hash, statefulset.kubernetes.io/pod-name or a CronJob's job-name.

PodPresets, ConfigMaps and Secrets in the files count. With --kubeconfig or --context those
of the cluster count too, and come first: presets are applied from oldest to newest. One in
a file replaces the stored one of its name. It changes nothing. It prints values only with
--output json, whose "result" is the pod as it would be created.

Exit status: 0 if no preset is in conflict; 1 if one is; 2 for a wrong command line,
or a file or cluster that cannot be read.`,
		Example: `  kubectl podenv preset -f pod.yaml -f presets.yaml
  kubectl podenv preset -f deployment.yaml --kubeconfig ~/.kube/config --namespace shop
  kubectl podenv preset -f pod.yaml -f presets.yaml --output json | jq '.[].result'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.preset(cmd, o)
		},
	}
	flags := cmd.Flags()
	o.add(flags)
	flags.StringVarP(&o.output, "output", "o", "text", "text or json")
	cmd.AddCommand(newConvert(a))
	flags.BoolVar(&o.noServiceAccount, "no-service-account-plugin", false, "the API server's admission plugin ServiceAccount is off: a pod that names no account gets no token")
	return cmd
}

func newConvert(a *app) *cobra.Command {
	var files manifestFlags
	var version string
	cmd := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Write PodPresets as MutatingAdmissionPolicies, for clusters without PodPreset",
		Long: `convert reads PodPresets and writes a MutatingAdmissionPolicy and its binding for each.
The policy injects the same variables, envFrom, volumes and mounts into the pods of the
same namespace and labels, and leaves a pod in conflict as it is. Comments in front of
each say what it does not carry. Where a policy fails, the pod is created without it.

A policy is an object of the cluster and needs v1.36, or v1.33 with the feature gate
MutatingAdmissionPolicy, its API and --policy-version.`,
		Example: `  kubectl podenv preset convert -f presets.yaml > policies.yaml
  kubectl podenv preset convert -f presets.yaml --namespace shop | kubectl apply -f -`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(preset.PolicyVersions, version) {
				return &usageError{fmt.Errorf("--policy-version %q: choose %s", version, strings.Join(preset.PolicyVersions, " or "))}
			}
			var manifest preset.Manifest
			if err := files.read(cmd.InOrStdin(), &manifest); err != nil {
				return &usageError{err}
			}
			if err := preset.WritePolicies(a.out, &manifest, files.namespace, version); err != nil {
				return &usageError{err}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&files.files, "filename", "f", nil, "a manifest, - for standard input; may be repeated")
	flags.StringVarP(&files.namespace, "namespace", "n", "default", "of presets that name none")
	flags.StringVar(&version, "policy-version", "v1", "of admissionregistration.k8s.io: v1, v1beta1 for v1.34 and v1.35, or v1alpha1 for v1.33")
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

// pods reads the files and, with --kubeconfig or --context, the cluster.
func (o *presetOptions) pods(cmd *cobra.Command) ([]preset.Pod, error) {
	var manifest preset.Manifest
	if err := o.read(cmd.InOrStdin(), &manifest); err != nil {
		return nil, err
	}
	options, err := o.presetOptions()
	if err != nil {
		return nil, err
	}
	options.NoServiceAccount = o.noServiceAccount
	return preset.Pods(cmd.Context(), &manifest, options)
}

// presetOptions returns the clients for the cluster, if there is one, and the default namespace.
func (m *manifestFlags) presetOptions() (o preset.Options, err error) {
	config, namespace, err := m.cluster()
	o.Namespace = namespace
	if err != nil || config == nil {
		return o, err
	}
	if o.Client, err = kubernetes.NewForConfig(config); err != nil {
		return o, err
	}
	o.Dynamic, err = dynamic.NewForConfig(config)
	return o, err
}
