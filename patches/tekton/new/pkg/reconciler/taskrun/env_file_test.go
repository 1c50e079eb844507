package taskrun

import (
	"testing"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestAStepThatWaitsForAnEnvFileHasNotFailed(t *testing.T) {
	for message, failed := range map[string]bool{
		`couldn't set variable "A" of container "step-s" from key "K" of env file "a.env" in volume "v": no such file`: false,
		`secret "env" not found`: true,
	} {
		tr := &v1.TaskRun{}
		tr.Status.Steps = []v1.StepState{{Name: "s", ContainerState: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: CreateContainerConfigError, Message: message},
		}}}
		if got, _, _ := (&Reconciler{}).checkPodFailed(t.Context(), tr); got != failed {
			t.Errorf("%s: failed is %t, want %t", message, got, failed)
		}
	}
}
