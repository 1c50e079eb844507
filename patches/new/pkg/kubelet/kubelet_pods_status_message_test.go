/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
