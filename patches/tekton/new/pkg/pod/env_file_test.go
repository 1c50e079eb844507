package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
)

func TestAPendingPodThatWaitsForAnEnvFile(t *testing.T) {
	const file = `couldn't set variable "A" of container "step-s" from key "K" of env file "a.env" in volume "v": the file does not exist`
	for _, tc := range []struct {
		name, reason, message string
		want                  corev1.ConditionStatus
		wantReason            string
	}{
		{"a file of this branch's kubelet", "CreateContainerConfigError", file, corev1.ConditionUnknown, "Pending"},
		{"a file that upstream's kubelet cannot parse", "CreateContainerConfigError", "couldn't parse env file", corev1.ConditionUnknown, "Pending"},
		{"a key that upstream's kubelet does not find", "CreateContainerConfigError", `environment variable key "K" not found in file`, corev1.ConditionUnknown, "Pending"},
		{"a Secret", "CreateContainerConfigError", `secret "env" not found`, corev1.ConditionFalse, "CreateContainerConfigError"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{
				Name:  "step-s",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: tc.reason, Message: tc.message}},
			}}}}
			var status v1.TaskRunStatus
			updateIncompleteTaskRunStatus(&status, pod)
			got := status.GetCondition(apis.ConditionSucceeded)
			if d := cmp.Diff([]string{string(tc.want), tc.wantReason}, []string{string(got.Status), got.Reason}); d != "" {
				t.Errorf("-want, +got: %s; message %s", d, got.Message)
			}
		})
	}
}
