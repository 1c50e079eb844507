package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/operator/audit"
)

func newAudit(a *app) *cobra.Command {
	var o audit.Options
	var format string
	var readKeys bool
	cluster := genericclioptions.NewConfigFlags(false)
	cluster.CacheDir = nil // nothing is cached
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List the pods, pod templates and PodPresets of any cluster that use the features",
		Long: `audit answers an operator's question: is the feature in use, and where? It lists the
variables that come from env files (fileKeyRef, KEP-3721) and what strict validation of
names refuses (KEP-4369): the name of a variable (relaxed name), the prefix of an envFrom
(relaxed prefix), the key of a fileKeyRef and the name that envFrom makes of a key (relaxed
key). It also lists each PodPreset, and the same uses in what it adds to pods. Run it before you turn a gate off, before a cluster goes back to a release without
the gate, and before nodes go from v1.34 to v1.35, where the form of env files changes. It
only reads.

It looks at pods, their init and ephemeral containers included, and at the templates of
CronJobs, DaemonSets, Deployments, Jobs, PodTemplates, ReplicaSets,
ReplicationControllers and StatefulSets, in all namespaces unless --namespace names one,
and at the keys of the ConfigMaps and Secrets that their envFrom names. It looks at
PodPresets where the server serves them: not where their gate or their API is off. The user
needs permission to list all of these, and to get ConfigMaps and Secrets. If it is missing,
the error names the role that gives it (the role view has neither podtemplates nor
secrets). With --envfrom-keys=false, the audit does not read ConfigMaps and Secrets. Of a
custom resource with a template of its own, it sees only the pods.

The columns are namespace, kind, name, container, variable (or prefix, or key) and what. The
table quotes the names that need it; TSV has no heading and prints names as they are;
JSON also has the object's controller.

Exit status: 0 if it found nothing, 3 if it found something, 1 if an error kept it from
seeing everything (it prints what it saw), 2 for a wrong command line, 130 after Ctrl-C.`,
		Example: `  kubectl podenv audit
  kubectl podenv audit --context production --owners-only
  kubectl podenv audit --output tsv | awk -F '\t' '$6 == "fileKeyRef" { print $1 }' | sort -u
  kubectl podenv audit --namespace shop || test $? = 3`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			write, ok := map[string]func(io.Writer, []audit.Finding) error{
				"table": audit.WriteTable, "tsv": audit.WriteTSV, "json": jsonout.WriteList[audit.Finding],
			}[format]
			if !ok {
				return &usageError{fmt.Errorf("--output %q: choose table, tsv or json", format)}
			}
			if o.PageSize <= 0 {
				return &usageError{fmt.Errorf("--chunk-size %d: give a positive number of objects", o.PageSize)}
			}
			o.Namespace, o.SkipKeys = *cluster.Namespace, !readKeys
			report, err := runAudit(cmd.Context(), cluster, o)
			if err != nil {
				return err
			}
			if err := write(a.out, report.Findings); err != nil {
				return err
			}
			return a.concludeAudit(report)
		},
	}
	flags := cmd.Flags()
	cluster.AddFlags(flags)
	flags.Lookup("namespace").Usage = "look at this namespace only"
	flags.StringVarP(&format, "output", "o", "table", "table, tsv or json")
	flags.BoolVar(&readKeys, "envfrom-keys", true, "look at the keys of ConfigMaps and Secrets that envFrom names")
	flags.BoolVar(&o.OwnersOnly, "owners-only", false, "leave out what an object's controller, a Deployment for one, uses in the same way")
	flags.Int64Var(&o.PageSize, "chunk-size", 500, "how many objects to ask the API server for at a time")
	return cmd
}

// runAudit audits the cluster that the flags choose.
func runAudit(ctx context.Context, flags *genericclioptions.ConfigFlags, o audit.Options) (*audit.Report, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w; choose a cluster with --kubeconfig and --context", err)
	}
	config.UserAgent = "podenv-audit"
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // the audit sends one request at a time, and the server has its own limits
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		o.Dynamic, err = dynamic.NewForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", config.Host, err)
	}
	report, err := audit.Run(ctx, client, o)
	if err != nil && !errors.Is(err, audit.ErrNoNamespace) {
		return nil, fmt.Errorf("API server %s: %w; choose another cluster or user with --kubeconfig, --context and --user", config.Host, err)
	}
	return report, err
}

// concludeAudit prints a summary to standard error, and returns the error that gives the
// command its exit status.
func (a *app) concludeAudit(report *audit.Report) error {
	fmt.Fprintf(a.errs, "kubectl podenv: %d uses in %d pods, pod templates and PodPresets\n", len(report.Findings), report.Objects)
	switch {
	case slices.ContainsFunc(report.Unread, apierrors.IsForbidden):
		return fmt.Errorf("%w\nbind the user to the role that `kubectl create clusterrole podenv-audit --verb=list,get --resource=%s` makes",
			unreadError(report), strings.Join(report.Resources, ","))
	case len(report.Unread) > 0:
		return unreadError(report)
	case len(report.Findings) > 0:
		return errFound
	}
	return nil
}

func unreadError(report *audit.Report) error {
	return fmt.Errorf("not everything could be looked at:\n%w", errors.Join(report.Unread...))
}
