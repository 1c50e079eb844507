package kubelet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func TestStatusShowsTheCommandAsWritten(t *testing.T) {
	const message = `runc create failed: exec: "s3cr3t": executable file not found in $PATH`
	testCases := []struct {
		name          string
		command, args []string
		started       time.Time
		want          string
	}{
		{name: "a command without a reference", command: []string{"s3cr3t"}, started: time.Unix(0, 0), want: message},
		{name: "a container that ran wrote its own message", command: []string{"$(A)"}, started: time.Unix(1700000000, 0), want: message},
		{name: "a command with a reference", command: []string{"$(A)"}, started: time.Unix(0, 0),
			want: `the container runtime could not run "$(A)"; its message is not shown, because it may have the value of a variable`},
		{name: "args with a reference", args: []string{"$(A)"}, started: time.Unix(0, 0),
			want: `the container runtime could not run "$(A)"; its message is not shown, because it may have the value of a variable`},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Name: "setup", Command: []string{"$(B)"}}},
				Containers:     []v1.Container{{Name: "main", Command: tc.command, Args: tc.args}},
			}}
			status := &kubecontainer.PodStatus{ContainerStatuses: []*kubecontainer.Status{{
				Name: "main", State: kubecontainer.ContainerStateExited, Reason: "StartError", ExitCode: 128, Message: message, StartedAt: tc.started,
			}}}
			got := messageAsWritten(pod, status.ContainerStatuses[0])
			assert.Equal(t, tc.want, got)
		})
	}
}
