package kubelet

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
)

// What takes other arguments in other releases is called here alone.

// runContainerOptions returns what the kubelet starts the container with.
func runContainerOptions(kl *Kubelet, pod *v1.Pod, container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
	opts, _, err := kl.GenerateRunContainerOptions(context.Background(), pod, container, "", nil, nil)
	return opts, err
}

// mountsError returns why the mounts of the container cannot be made.
func mountsError(t *testing.T, container *v1.Container, volumes kubecontainer.VolumeMap, env []kubecontainer.EnvVar) error {
	t.Helper()
	_, _, err := makeMounts(klog.Background(), &v1.Pod{}, t.TempDir(), container, "", "", nil, volumes, hostutil.NewFakeHostUtil(nil), &subpath.FakeSubpath{}, env, false, nil)
	return err
}
