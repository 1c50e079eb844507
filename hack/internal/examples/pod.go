package examples

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
)

// poll is the interval of requests about a pod. Unit tests shorten it.
var poll = 300 * time.Millisecond

// runPod runs pod to its end, deletes it, and returns what the container printed.
func runPod(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod, container string) (string, error) {
	if err := deleteAndWait(ctx, pods, pod.Name); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := create(ctx, pods, pod); err != nil {
		return "", err
	}
	// Also after Ctrl-C, when ctx has ended.
	defer func() { _ = startDelete(context.WithoutCancel(ctx), pods, pod.Name) }()
	if err := waitForEnd(ctx, pods, pod.Name); err != nil {
		return "", err
	}
	log, err := pods.GetLogs(pod.Name, &v1.PodLogOptions{Container: container}).DoRaw(ctx)
	return string(log), err
}

func create(ctx context.Context, pods typedv1.PodInterface, pod *v1.Pod) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, last = pods.Create(ctx, pod, metav1.CreateOptions{})
		if apierrors.IsForbidden(last) && strings.Contains(last.Error(), "serviceaccount") {
			return false, nil // A new cluster has no default service account for a moment.
		}
		return last == nil, last
	})
	if apierrors.IsInvalid(last) {
		return fmt.Errorf("%w; are the gates on in the API server?", last)
	}
	return cmp.Or(last, err)
}

func waitForEnd(ctx context.Context, pods typedv1.PodInterface, name string) error {
	var last *v1.Pod
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = pod
		return pod.Status.Phase == v1.PodSucceeded, podFailure(pod)
	})
	if wait.Interrupted(err) && last != nil && context.Cause(ctx) == context.DeadlineExceeded {
		return fmt.Errorf("pod %s is still %s after %s: `kubectl describe pod %[1]s` shows why", name, last.Status.Phase, timeout)
	}
	return err
}

// podFailure returns an error that says what to do if the pod cannot succeed any more, or nil.
func podFailure(pod *v1.Pod) error {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		waiting := status.State.Waiting
		if waiting == nil {
			continue
		}
		switch waiting.Reason {
		case "ErrImageNeverPull":
			return fmt.Errorf("node %s lacks the image %s: load the images of test/images into every node, as `podenv up` does", pod.Spec.NodeName, status.Image)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return fmt.Errorf("container %s of pod %s cannot start: %s", status.Name, pod.Name, waiting.Message)
		}
	}
	if pod.Status.Phase == v1.PodFailed {
		return fmt.Errorf("pod %s failed: `kubectl logs %[1]s --all-containers` shows why", pod.Name)
	}
	return nil
}

// deleteAndWait deletes the pod called name, if it exists, and waits until it is gone.
func deleteAndWait(ctx context.Context, pods typedv1.PodInterface, name string) error {
	if err := startDelete(ctx, pods, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("removing the pod %s of an earlier run: %w", name, err)
	}
	return nil
}

func startDelete(ctx context.Context, pods typedv1.PodInterface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(1))})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
