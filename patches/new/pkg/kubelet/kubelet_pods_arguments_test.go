package kubelet

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/util/anyrelease"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
)

// What takes other arguments in other releases is called here alone.

// runContainerOptions returns what the kubelet starts the container with.
func runContainerOptions(kl *Kubelet, pod *v1.Pod, container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
	results := anyrelease.Call(kl.GenerateRunContainerOptions, context.Background(), pod, container)
	err, _ := results[2].(error)
	return results[0].(*kubecontainer.RunContainerOptions), err
}

// mountsError returns why the mounts of the container cannot be made.
func mountsError(t *testing.T, container *v1.Container, volumes kubecontainer.VolumeMap, env []kubecontainer.EnvVar) error {
	t.Helper()
	err, _ := anyrelease.Call(makeMounts, &v1.Pod{}, t.TempDir(), container, volumes, hostutil.NewFakeHostUtil(nil), &subpath.FakeSubpath{}, env)[2].(error)
	return err
}
