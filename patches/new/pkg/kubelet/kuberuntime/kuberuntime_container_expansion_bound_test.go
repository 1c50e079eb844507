package kuberuntime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
)

// The caller, startContainer, makes CreateContainerConfigError of it.
func TestGenerateContainerConfigOfACommandThatIsTooLongForAProcess(t *testing.T) {
	m := newTestManager(t)
	pod := makeTestPod("pod", "default", "12345678", []v1.Container{{Name: "main", Image: "busybox", Args: []string{strings.Repeat("$(A)", 1000)}}})
	m.runtimeHelper = &optionsHelper{RuntimeHelper: &containertest.FakeRuntimeHelper{}, options: func(*v1.Container) (*kubecontainer.RunContainerOptions, error) {
		return &kubecontainer.RunContainerOptions{Envs: []kubecontainer.EnvVar{{Name: "A", Value: strings.Repeat("x", 1000)}}}, nil
	}}

	config, err := containerConfig(m, pod, &pod.Spec.Containers[0], 0)

	assert.Nil(t, config)
	assert.ErrorContains(t, err, "cannot expand args[0]: the result is longer than a process can be given")
}
