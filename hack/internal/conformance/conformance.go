// Package conformance runs a release's own end-to-end specs, by default those of the conformance
// suite, in the two runs of the conformance programme: in parallel, then those labelled Serial.
package conformance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/suite"
)

// Parallel and Serial are the two runs.
const (
	Parallel = "parallel"
	Serial   = "serial"
)

// Options say what to run, and where.
type Options struct {
	Dir        string        // for e2e.log, and junit_01.xml with the results
	Specs      *build.Specs  // of the series or its stock release
	Cluster    string        // a name that changes with the cluster, its build and its gates
	Taints     []string      // keys of taints that nodes may have, beside that of control planes
	Kubeconfig string        // file
	Kubectl    string        // kubectl of the series
	Focus      string        // regular expression of spec names; the conformance suite if empty
	Skip       []string      // regular expressions of names of specs that do not run
	Runs       []string      // Parallel, Serial or both
	Procs      int           // specs in parallel, in the first run
	Timeout    time.Duration // of each run
	Again      bool          // also run what has passed
}

// ErrEnded is in the chain of the error of a run that ended, as by its timeout, before all of its specs had run.
var ErrEnded = errors.New("the run ended early")

// GinkgoReport is the file with Ginkgo's JSON report of the last run called name.
func (o Options) GinkgoReport(name string) string { return filepath.Join(o.Dir, name+".json") }

// Run runs the specs that have not passed on the same build, and returns a row for each, also with an error.
func Run(ctx context.Context, client kubernetes.Interface, o Options, r *progress.Reporter) ([]Row, error) {
	unlock, err := lockfile.TryLock(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	results, last, err := o.load()
	if err != nil {
		return nil, err
	}
	for _, name := range o.Runs {
		step := r.Step("conformance, " + name)
		if last[name] > 0 {
			r.Print(fmt.Sprintf("        the last one took about %s", last[name]))
		}
		failed := step.End(o.run(ctx, client, name, results, step))
		if failed != nil && !errors.Is(failed, ErrEnded) {
			return results.rows(o.Runs), failed
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return results.rows(o.Runs), err
	}
	rows, leftOut := results.rows(o.Runs), junit.Count(results.Suite.Cases).Skipped
	switch {
	case !slices.ContainsFunc(rows, func(row Row) bool { return row.State != LeftOut }):
		err = fmt.Errorf("%w: --focus %q matches none that can run here", suite.ErrNoSpecs, o.Focus)
	case o.Focus == "" && leftOut > 8: // of some 400
		err = fmt.Errorf("%d specs of the suite left themselves out: that shows no conformance", leftOut)
	}
	return rows, err
}

// run runs the specs of a run that have not passed and adds what they gave to results, also after Ctrl-C.
func (o Options) run(ctx context.Context, client kubernetes.Interface, name string, results *results, step *progress.Step) (err error) {
	clean, err := newNamespaces(ctx, client)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, clean(context.WithoutCancel(ctx))) }()
	reports, err := os.MkdirTemp(o.Dir, "run-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(reports)
	log, err := os.OpenFile(filepath.Join(o.Dir, "e2e.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	selected, follow := -1, suite.Follow(step)
	lines := run.Lines(func(line string) {
		fmt.Sscanf(line, "Will run %d of", &selected) //nolint:errcheck // another line
		follow(line)
	})
	runErr := run.Command(ctx, filepath.Join(o.Specs.Dir, "ginkgo"), o.arguments(name, reports, results)...).Interruptible(2 * time.Minute).Log(io.MultiWriter(log, lines)).Run()
	cases, err := junit.Read(filepath.Join(reports, "junit_01.xml"))
	if err != nil {
		return fmt.Errorf("the specs ended without results, see %s: %w", log.Name(), errors.Join(context.Cause(ctx), runErr, err))
	}
	added := results.add(cases)
	if err := results.save(); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case added > 0 && added < selected:
		return fmt.Errorf("%w: %d of %d specs ran, see %s", ErrEnded, added, selected, log.Name())
	case added < selected || selected < 0 || runErr != nil && junit.Count(cases).Failed == 0:
		return errors.Join(fmt.Errorf("%d of %d specs ran, see %s", added, selected, log.Name()), runErr)
	case selected == 0:
		step.Cached("no spec is left on this build; --again runs them again")
	}
	return nil // which specs failed is in results
}

// arguments returns the arguments with which Ginkgo runs the specs except for those that have passed.
func (o Options) arguments(name, reports string, results *results) []string {
	report, label, procs := o.GinkgoReport(name), "!Serial", o.Procs
	if name == Serial {
		label, procs = "Serial", 1
	}
	args := []string{"run", "--no-color", "-v", "--output-dir=" + filepath.Dir(report), "--json-report=" + filepath.Base(report), "--timeout=" + o.Timeout.String(),
		"--focus=" + cmp.Or(o.Focus, `\[Conformance\]`), "--label-filter=" + label, fmt.Sprintf("--procs=%d", procs)}
	for _, name := range o.Skip {
		args = append(args, "--skip="+name)
	}
	for _, row := range results.rows([]string{name}) {
		if row.State == Passed || row.State == Flaky { // an argument for each: the kernel limits the length of one
			args = append(args, "--skip="+regexp.QuoteMeta(row.Spec)+"$")
		}
	}
	return append(args, filepath.Join(o.Specs.Dir, "e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+o.Kubeconfig, "--kubectl-path="+o.Kubectl, "--report-dir="+reports, "--e2e-output-dir="+reports,
		"--non-blocking-taints="+strings.Join(append(o.Taints, "node-role.kubernetes.io/control-plane"), ","), "--disable-log-dump", "--node-schedulable-timeout=3m", "--system-pods-startup-timeout=3m")
}

// Check sets Cluster and Taints to those of the cluster of client. It returns an error if conformance cannot
// be shown there: if the minor is another, the user may not create namespaces, or nodes cannot run pods.
func (o *Options) Check(ctx context.Context, client kubernetes.Interface, minor string) error {
	version, err := cluster.OfMinor(client, minor)
	if err != nil {
		return err
	}
	create := authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authv1.ResourceAttributes{Verb: "create", Resource: "namespaces"}}
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authv1.SelfSubjectAccessReview{Spec: create}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking what the user may do: %w", err)
	}
	if !review.Status.Allowed {
		return errors.New("the kubeconfig's user may not create namespaces: use one that is bound to the ClusterRole cluster-admin")
	}
	system, errSystem := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err := errors.Join(errSystem, err); err != nil {
		return fmt.Errorf("reading the cluster's nodes and its namespace kube-system: %w", err)
	}
	var kubelets, unfit, gates []string
	components := []string{"/metrics"} // of the API server, and those of kubelets
	for _, n := range nodes.Items {
		kubelets = append(kubelets, n.Status.NodeInfo.KubeletVersion)
		if ready := cluster.NodeReady(&n); ready.Status != corev1.ConditionTrue && !n.Spec.Unschedulable {
			return fmt.Errorf("node %s is not ready: %s: the specs wait for all nodes that are not cordoned", n.Name, ready.Message)
		} else if ready.Status == corev1.ConditionTrue {
			components = append(components, "/api/v1/nodes/"+n.Name+"/proxy/metrics")
		}
		taints := slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectPreferNoSchedule })
		for _, taint := range taints {
			o.Taints = append(o.Taints, taint.Key)
		}
		if len(taints) > 0 {
			unfit = append(unfit, n.Name+" has the taint "+taints[0].ToString())
		}
	}
	if fit := len(nodes.Items) - len(unfit); fit < 2 {
		return fmt.Errorf("pods can run on %d of the cluster's nodes, and the specs need 2: add nodes or remove taints; %s", fit, strings.Join(unfit, "; "))
	}
	for _, path := range components {
		metrics, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		if err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("reading which gates are on, from %s: %w", path, err)
		}
		on, _ := featuregates.OnFromMetrics(bytes.NewReader(metrics)) // nil if the user may not see them
		gates = append(gates, featuregates.Flag(on))
	}
	slices.Sort(kubelets)
	o.Cluster = fmt.Sprintf("%s %s %s gates %.12s", version, system.UID, slices.Compact(kubelets), digest.Of(gates...))
	return nil
}

// newNamespaces returns a function that deletes the namespaces that specs have made since then, which they
// do themselves unless they are interrupted.
func newNamespaces(ctx context.Context, client kubernetes.Interface) (func(context.Context) error, error) {
	namespaces, ofSpecs := client.CoreV1().Namespaces(), metav1.ListOptions{LabelSelector: "e2e-run"}
	before, err := namespaces.List(ctx, ofSpecs)
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	return func(ctx context.Context) error {
		after, err := namespaces.List(ctx, ofSpecs)
		if err != nil {
			return fmt.Errorf("deleting the namespaces of the specs: %w", err)
		}
		for _, ns := range after.Items {
			if ns.DeletionTimestamp != nil || slices.ContainsFunc(before.Items, func(old corev1.Namespace) bool { return old.Name == ns.Name }) {
				continue
			}
			if e := namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(e) {
				err = errors.Join(err, e)
			}
		}
		return err
	}, nil
}
