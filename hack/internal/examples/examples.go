// Package examples runs the pods that show this branch's features on a new cluster, from manifests
// that also work with kubectl apply, and shows the environment that their containers saw.
package examples

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/test/manifests"
)

// timeout is how long one pod may take from its creation to its end.
const timeout = time.Minute

// Result is what the container of an example saw.
type Result struct {
	featuregates.Example
	Container string
	Image     string   // of the container
	Env       []string // the environment that the container saw, as NAME=VALUE
}

// Run runs the examples of the features that are on in the cluster, in parallel, in the namespace
// default. It replaces pods of an earlier run. It returns an error if a container does not see a
// variable that a feature sets.
func Run(ctx context.Context, config *rest.Config, on map[string]bool, step *progress.Step) ([]Result, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return runAll(ctx, client, objects, on, step)
}

func runAll(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, on map[string]bool, step *progress.Step) ([]Result, error) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("reading the version of the API server: %w", err)
	}
	all, err := featuregates.Examples(info.GitVersion, on)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Pod)
	}
	step.Now("running %s", strings.Join(names, " and "))
	results := make([]Result, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for i, e := range all {
		group.Go(func() error {
			var err error
			if results[i], err = run(ctx, client, objects, e); err != nil {
				return fmt.Errorf("test/manifests/%s: %w", e.Pod, err)
			}
			return nil
		})
	}
	return results, group.Wait()
}

// run runs one example, and deletes its objects.
func run(ctx context.Context, client kubernetes.Interface, objects dynamic.Interface, e featuregates.Example) (Result, error) {
	pod, err := manifests.Pod(e.Pod)
	if err != nil {
		return Result{}, err
	}
	for _, file := range e.Objects {
		object, err := manifests.Object(file)
		if err != nil {
			return Result{}, err
		}
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		of := objects.Resource(resource).Namespace(metav1.NamespaceDefault)
		if _, err := of.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return Result{}, fmt.Errorf("creating the %s %s: %w; does the API server serve %s?", object.GetKind(), object.GetName(), err, object.GetAPIVersion())
		}
		// Also after Ctrl-C, when ctx has ended.
		defer func() { _ = of.Delete(context.WithoutCancel(ctx), object.GetName(), metav1.DeleteOptions{}) }()
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	if err := awaitReady(ctx, pods, pod, e); err != nil {
		return Result{}, err
	}
	r := Result{Example: e, Container: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	log, err := runPod(ctx, pods, pod, r.Container)
	if err == nil {
		r.Env, err = parse(log)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Result{}, fmt.Errorf("container %s of pod %s: %w", r.Container, pod.Name, err)
	}
	return r, nil
}

// check returns an error if a variable of the feature is missing or empty.
func (r Result) check() error {
	for _, name := range r.Sets {
		if !slices.ContainsFunc(r.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") && entry != name+"=" }) {
			return fmt.Errorf("it did not see %s of %s: is the gate %s on in the node's kubelet?", name, r.From, r.Gate)
		}
	}
	return nil
}

// parse parses an environment: the JSON of the envdump image, or the lines of env.
func parse(log string) ([]string, error) {
	if !strings.HasPrefix(log, "{") {
		return strings.Split(strings.TrimRight(log, "\n"), "\n"), nil
	}
	var document struct{ Env []string }
	if err := json.Unmarshal([]byte(log), &document); err != nil {
		return nil, fmt.Errorf("it printed %q: %w", log, err)
	}
	return document.Env, nil
}

// Print writes what each container saw as text: first the variables that the feature sets.
func Print(w io.Writer, results []Result) {
	for _, r := range results {
		fmt.Fprintf(w, "%s: container %s (%s) saw\n", strings.TrimSuffix(r.Pod, ".yaml"), r.Container, r.Image)
		others := ""
		for _, entry := range r.Env {
			if name, _, _ := strings.Cut(entry, "="); slices.Contains(r.Sets, name) {
				fmt.Fprintf(w, "    %s    <- from %s\n", entry, r.From)
			} else {
				others += "    " + entry + "\n"
			}
		}
		fmt.Fprint(w, others)
	}
}

// awaitReady creates pod in dry runs until the API server makes of it what the example says.
func awaitReady(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod, e featuregates.Example) error {
	if e.Ready == nil {
		return nil
	}
	probe := pod.DeepCopy()
	probe.Name, probe.GenerateName = "", pod.Name+"-"
	err := poll.Until(ctx, timeout, func(ctx context.Context) error {
		created, err := pods.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case apierrors.IsForbidden(err): // A new cluster has no default service account for a moment.
			return err
		case err != nil:
			return poll.Stop(err)
		case !e.Ready(created):
			return errors.New("pods do not have it")
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the API server does not set %s of %s: %w; is the gate %s on there?", strings.Join(e.Sets, ", "), e.From, err, e.Gate)
	}
	return nil
}

// runPod runs pod to its end, deletes it, and returns what the container printed.
func runPod(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod, container string) (string, error) {
	if err := startDelete(ctx, pods, pod.Name); err != nil {
		return "", fmt.Errorf("removing the pod %s of an earlier run: %w", pod.Name, err)
	}
	if err := poll.Until(ctx, timeout, func(ctx context.Context) error { return create(ctx, pods, pod) }); err != nil {
		return "", err
	}
	// Also after Ctrl-C, when ctx has ended.
	defer func() { _ = startDelete(context.WithoutCancel(ctx), pods, pod.Name) }()
	err := poll.Until(ctx, timeout, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return poll.Stop(err)
		}
		return unfinished(pod)
	})
	if err != nil {
		return "", err
	}
	log, err := pods.GetLogs(pod.Name, &v1.PodLogOptions{Container: container}).DoRaw(ctx)
	return string(log), err
}

// create creates pod. Its error is a poll.Fatal unless another try may succeed.
func create(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod) error {
	_, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err): // until the pod of an earlier run is gone
		return err
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount"): // A new cluster has none for a moment.
		return err
	case apierrors.IsInvalid(err):
		err = fmt.Errorf("%w; are the gates on in the API server?", err)
	}
	return poll.Stop(err)
}

// unfinished returns an error, with what to do about it, until the pod has succeeded. It is a poll.Fatal if
// the pod cannot succeed any more.
func unfinished(pod *v1.Pod) error {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImageNeverPull":
			return poll.Stop(fmt.Errorf("node %s lacks the image %s: load the images of test/images into every node, as `podenv up` does", pod.Spec.NodeName, status.Image))
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return poll.Stop(fmt.Errorf("container %s of pod %s cannot start: %s", status.Name, pod.Name, waiting.Message))
		}
	}
	switch pod.Status.Phase {
	case v1.PodSucceeded:
		return nil
	case v1.PodFailed:
		return poll.Stop(fmt.Errorf("pod %s failed: `kubectl logs %[1]s --all-containers` shows why", pod.Name))
	}
	return fmt.Errorf("pod %s is %s: `kubectl describe pod %[1]s` shows why", pod.Name, pod.Status.Phase)
}

// startDelete deletes the pod called name, if it exists, and does not wait until it is gone.
func startDelete(ctx context.Context, pods typedv1.PodInterface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
