package kuberuntime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/expansion"
)

// A start of a container is one event, and the next start is another one.
func TestGenerateContainerConfigRecordsUnexpandedReferences(t *testing.T) {
	m := newTestManager(t)
	recorder := record.NewFakeRecorder(10)
	pod := makeTestPod("pod", "default", "12345678", []v1.Container{
		{Name: "unexpanded", Image: "busybox", Command: []string{"$(A)"}, Args: []string{"$(A)", "$(B)"}},
		{Name: "escaped", Image: "busybox", Command: []string{"$$(A)"}},
	})

	m.runtimeHelper = &optionsHelper{RuntimeHelper: m.runtimeHelper, options: func(container *v1.Container) (*kubecontainer.RunContainerOptions, error) {
		return &kubecontainer.RunContainerOptions{
			UnexpandedReferences: expansion.NewUnexpandedReferences(container.Name, expansion.ObjectEventRecorderFor(pod, recorder)),
		}, nil
	}}

	for restarts := 0; restarts < 2; restarts++ {
		config, err := containerConfig(m, pod, &pod.Spec.Containers[0], restarts)
		require.NoError(t, err)
		assert.Equal(t, []string{"$(A)"}, config.Command)
		assert.Equal(t, []string{"$(A)", "$(B)"}, config.Args)
		require.Len(t, recorder.Events, 1)
		assert.Contains(t, <-recorder.Events, "Container unexpanded has references that could not be expanded: $(A) (command, args), $(B) (args)")
	}

	config, err := containerConfig(m, pod, &pod.Spec.Containers[1], 0)
	require.NoError(t, err)
	assert.Equal(t, []string{"$(A)"}, config.Command)
	assert.Empty(t, recorder.Events)
}
