package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/cluster"
)

// Check returns the version of the cluster, or an error if conformance cannot be shown on it: if its minor
// is another, or the user may not create namespaces, or pods cannot run on two nodes.
func Check(ctx context.Context, client kubernetes.Interface, minor string) (string, error) {
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking for the version of the API server: %w", err)
	}
	if !strings.HasPrefix(version.GitVersion, minor+".") {
		return "", fmt.Errorf("the cluster runs %s: name its minor with --series, so that the specs are those of the same one", version.GitVersion)
	}
	review := &authv1.SelfSubjectAccessReview{}
	review.Spec.ResourceAttributes = &authv1.ResourceAttributes{Verb: "create", Resource: "namespaces"}
	review, err = client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking what the user may do: %w", err)
	}
	if !review.Status.Allowed {
		return "", errors.New("the kubeconfig's user may not create namespaces: use one that is bound to the ClusterRole cluster-admin")
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("listing nodes: %w", err)
	}
	var unfit []string
	for _, n := range nodes.Items {
		why := ""
		for _, taint := range n.Spec.Taints {
			if taint.Effect != corev1.TaintEffectPreferNoSchedule {
				why = "has the taint " + taint.ToString()
			}
		}
		if ready := cluster.NodeReady(&n); ready.Status != corev1.ConditionTrue {
			why = "is not ready: " + ready.Message
		}
		if why != "" {
			unfit = append(unfit, n.Name+" "+why)
		}
	}
	if fit := len(nodes.Items) - len(unfit); fit < 2 {
		return "", fmt.Errorf("pods can run on %d of the cluster's nodes, and the specs need 2: add nodes or remove taints; %s", fit, strings.Join(unfit, "; "))
	}
	return version.GitVersion, nil
}

// newNamespaces returns a function that deletes the namespaces that specs have made since then, which they
// do themselves unless they are interrupted.
func newNamespaces(ctx context.Context, client kubernetes.Interface) (func(context.Context) error, error) {
	namespaces, ofSpecs := client.CoreV1().Namespaces(), metav1.ListOptions{LabelSelector: "e2e-run"}
	before, err := namespaces.List(ctx, ofSpecs)
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	old := map[string]bool{}
	for _, ns := range before.Items {
		old[ns.Name] = true
	}
	return func(ctx context.Context) error {
		after, err := namespaces.List(ctx, ofSpecs)
		if err != nil {
			return fmt.Errorf("deleting the namespaces of the specs: %w", err)
		}
		for _, ns := range after.Items {
			if !old[ns.Name] {
				_ = namespaces.Delete(ctx, ns.Name, metav1.DeleteOptions{}) // it may be gone
			}
		}
		return nil
	}, nil
}
