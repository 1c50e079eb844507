package tekton

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
)

// Namespace is where Tekton runs.
const Namespace = "tekton-pipelines"

var (
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	taskRuns    = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1beta1", Resource: "taskruns"}
)

// Installation is Tekton on a cluster.
type Installation struct {
	// Timeout is how long the webhook may take to serve.
	Timeout time.Duration

	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// NewInstallation returns the installation on the cluster of config, which may not exist yet.
// config should not limit the rate of requests.
func NewInstallation(config *rest.Config) (*Installation, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	return &Installation{Timeout: 2 * time.Minute, client: client, dynamic: dyn, mapper: mapper}, nil
}

// Check reports whether the release is installed. The error says why it cannot be installed.
func (i *Installation) Check(ctx context.Context, r *Release) (installed bool, err error) {
	_, oldest, err := objects(r)
	if err != nil {
		return false, err
	}
	server, err := i.client.Discovery().ServerVersion()
	if err != nil {
		return false, err
	}
	if err := checkVersion(server.GitVersion, oldest, r.Version); err != nil {
		return false, err
	}
	crd, err := i.dynamic.Resource(crds).Get(ctx, "tasks.tekton.dev", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if crd.GetLabels()[managedBy] != podenv {
		return false, fmt.Errorf("the cluster cannot have Tekton: it has another one, %s of %s: remove that first, or choose another cluster with --name",
			title(crd), crd.GetLabels()["pipeline.tekton.dev/release"])
	}
	controller, err := i.dynamic.Resource(deployments).Namespace(Namespace).Get(ctx, "tekton-pipelines-controller", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !strings.Contains(fmt.Sprint(controller.Object["spec"]), r.Images["controller"]) {
		return false, nil
	}
	return i.checkServing(ctx) == nil, nil
}

func checkVersion(server, oldest, release string) error {
	have, err := version.ParseGeneric(server)
	if err != nil {
		return err
	}
	if want, err := version.ParseGeneric(oldest); err != nil {
		return fmt.Errorf("the manifests of Tekton %s ask for Kubernetes %q: %w", release, oldest, err)
	} else if have.LessThan(want) {
		return fmt.Errorf("the cluster cannot have Tekton: Tekton %s needs Kubernetes v%s, and it runs %s: choose a newer cluster with --name", release, oldest, server)
	}
	return nil
}

// Install applies the manifests of r and waits until the webhook serves. The images must be on the
// nodes. Install keeps what users have set in Tekton's ConfigMaps.
func (i *Installation) Install(ctx context.Context, r *Release, step *progress.Step) error {
	all, _, err := objects(r)
	if err != nil {
		return err
	}
	var retry []*unstructured.Unstructured
	for n, o := range all {
		step.Now("applying %s (%d of %d)", title(o), n+1, len(all))
		err := i.apply(ctx, o)
		if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			// The webhook of an earlier installation is down. A later manifest starts it.
			retry = append(retry, o)
			continue
		}
		if err != nil {
			return fmt.Errorf("applying %s: %w", title(o), err)
		}
	}
	if err := i.wait(ctx, step); err != nil {
		return err
	}
	for _, o := range retry {
		if err := i.apply(ctx, o); err != nil {
			return fmt.Errorf("applying %s: %w", title(o), err)
		}
	}
	return nil
}

// resource returns the client of o's kind. The mapper asks the server again for an unknown kind,
// such as that of a new CRD.
func (i *Installation) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := i.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return i.dynamic.Resource(mapping.Resource), nil
	}
	return i.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

// apply uses server-side apply: CRDs are too large for the annotation of client-side apply.
func (i *Installation) apply(ctx context.Context, o *unstructured.Unstructured) error {
	client, err := i.resource(o)
	if err != nil {
		return err
	}
	_, err = client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: podenv, Force: true})
	return err
}

// wait waits until Tekton accepts runs. The error after a timeout has the last lines of the
// webhook's log.
func (i *Installation) wait(ctx context.Context, step *progress.Step) error {
	err := poll.Until(ctx, i.Timeout, func(ctx context.Context) error {
		err := i.checkServing(ctx)
		if err != nil {
			step.Now("waiting: %v", err)
		}
		return err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("the webhook and the controller of Tekton do not serve: %w\n%s\nsee more with `kubectl --namespace %s describe pods`, or start over with `podenv tekton --delete`",
		err, i.diagnose(ctx), Namespace)
}

// checkServing returns nil if both Deployments have all their pods and the webhook admits a
// TaskRun, with its defaults, validation and conversion.
func (i *Installation) checkServing(ctx context.Context) error {
	for _, name := range []string{"tekton-pipelines-webhook", "tekton-pipelines-controller"} {
		d, err := i.client.AppsV1().Deployments(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas < *d.Spec.Replicas || s.AvailableReplicas < *d.Spec.Replicas || s.Replicas > *d.Spec.Replicas {
			return fmt.Errorf("%s has %d of %d pods available", name, s.AvailableReplicas, *d.Spec.Replicas)
		}
	}
	_, err := i.dynamic.Resource(taskRuns).Namespace(metav1.NamespaceDefault).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tekton.dev/v1beta1", "kind": "TaskRun",
		"metadata": map[string]any{"generateName": "podenv-"},
		"spec": map[string]any{"taskSpec": map[string]any{"steps": []any{
			map[string]any{"name": "none", "image": "none", "command": []any{"none"}},
		}}},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		err = fmt.Errorf("its webhook does not admit a TaskRun: %w", err)
	}
	return err
}

// diagnose returns what the pods of Tekton are waiting for, and the end of the webhook's log.
func (i *Installation) diagnose(ctx context.Context) string {
	pods, err := i.client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if deployments, err := i.client.AppsV1().Deployments(Namespace).List(ctx, metav1.ListOptions{}); err == nil {
		for _, d := range deployments.Items {
			for _, c := range d.Status.Conditions {
				if c.Type == appsv1.DeploymentReplicaFailure { // no pods, for example because of a quota
					fmt.Fprintf(&b, "%s: %s\n", d.Name, c.Message)
				}
			}
		}
	}
	for _, pod := range pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				fmt.Fprintf(&b, "pod %s: %s: %s\n", pod.Name, w.Reason, w.Message)
			}
		}
		if !strings.Contains(pod.Name, "webhook") {
			continue
		}
		lines := int64(10)
		log, err := i.client.CoreV1().Pods(Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
		if err != nil {
			log = []byte(err.Error())
		}
		fmt.Fprintf(&b, "the last lines of the log of pod %s:\n%s\n", pod.Name, log)
	}
	return strings.TrimSpace(b.String())
}

// Delete removes Tekton with all objects of its resources, and waits until it is gone.
func (i *Installation) Delete(ctx context.Context, r *Release, step *progress.Step) error {
	all, _, err := objects(r)
	if err != nil {
		return err
	}
	// Webhooks first: a webhook without a pod refuses later deletions.
	for _, webhooks := range []bool{true, false} {
		for _, o := range slices.Backward(all) {
			if strings.HasSuffix(o.GetKind(), "WebhookConfiguration") != webhooks {
				continue
			}
			step.Now("deleting %s", title(o))
			client, err := i.resource(o)
			if err != nil {
				return err
			}
			if err := client.Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("deleting %s: %w", title(o), err)
			}
		}
	}
	step.Now("waiting for the end of the namespace %s", Namespace)
	return poll.Until(ctx, i.Timeout, func(ctx context.Context) error {
		_, err := i.client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("the namespace %s is still there", Namespace))
	})
}
