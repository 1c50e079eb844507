package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// runContainerOptions returns what the kubelet starts the container with. Other releases call
// it otherwise.
func runContainerOptions(kl *Kubelet, pod *v1.Pod, container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
	opts, _, err := kl.GenerateRunContainerOptions(context.Background(), pod, container, "", nil)
	return opts, err
}
