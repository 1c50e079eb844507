package examples

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
)

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
