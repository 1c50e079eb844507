package kuberuntime

import (
	"context"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// What takes other arguments in other releases is called here alone.

// optionsHelper is a kubelet that starts containers with given options.
type optionsHelper struct {
	kubecontainer.RuntimeHelper
	options func(*v1.Container) (*kubecontainer.RunContainerOptions, error)
}

func (h *optionsHelper) GenerateRunContainerOptions(_ context.Context, _ *v1.Pod, container *v1.Container, _ string, _ []string, _ kubecontainer.ImageVolumes) (*kubecontainer.RunContainerOptions, func(), error) {
	opts, err := h.options(container)
	return opts, nil, err
}

// containerConfig returns what the runtime is asked for.
func containerConfig(m *kubeGenericRuntimeManager, pod *v1.Pod, container *v1.Container, restarts int) (*runtimeapi.ContainerConfig, error) {
	config, _, err := m.generateContainerConfig(context.Background(), container, pod, restarts, "", "busybox", nil, nil, nil)
	return config, err
}
