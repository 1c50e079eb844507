package taskrun

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/test"
	"github.com/tektoncd/pipeline/test/parse"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
)

const noSuchFile = `couldn't set variable "A" of container "step-s" from key "K" of env file "a.env" in volume "v": no such file`

func TestAStepThatWaitsForAnEnvFileHasNotFailed(t *testing.T) {
	for message, failed := range map[string]bool{noSuchFile: false, `secret "env" not found`: true} {
		tr := &v1.TaskRun{}
		tr.Status.Steps = []v1.StepState{{Name: "s", ContainerState: waits(message)}}
		if got, _, _ := (&Reconciler{}).checkPodFailed(t.Context(), tr); got != failed {
			t.Errorf("%s: failed is %t, want %t", message, got, failed)
		}
	}
}

// A TaskRun may be reconciled again after its timeout, as it was before, with the pod stopped.
func TestATimeoutSaysWhichEnvFileAStepWaitedFor(t *testing.T) {
	const reason = `: step "s" waited for an env file: ` + noSuchFile
	started := metav1.NewTime(testClock.Now().Add(-time.Second))
	for name, tc := range map[string]struct {
		seen, now corev1.ContainerState
		want      string
	}{
		"it waits":                     {waits(noSuchFile), waits(noSuchFile), reason},
		"it waits and was not seen to": {waits(""), waits(noSuchFile), reason},
		"the pod was stopped":          {waits(noSuchFile), corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137}}, reason},
		"it runs by now":               {waits(noSuchFile), corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}, ""},
		"it ended":                     {waits(noSuchFile), corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: started}}, ""},
		"it waits for something else":  {waits(""), waits(""), ""},
		"it waited for something else": {waits(`secret "env" not found`), corev1.ContainerState{}, ""},
	} {
		t.Run(name, func(t *testing.T) { expectTimeout(t, tc.seen, tc.now, tc.want) })
	}
}

func waits(message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: CreateContainerConfigError, Message: message}}
}

// expectTimeout reconciles a TaskRun that has seen its step so, and has timed out with its step now so.
func expectTimeout(t *testing.T, seen, now corev1.ContainerState, want string) {
	t.Helper()
	run := parse.MustParseV1TaskRun(t, `
metadata: {name: late, namespace: foo}
spec:
  timeout: 10s
  taskSpec: {steps: [{name: s, image: foo, command: [/run]}]}
status:
  conditions: [{status: Unknown, type: Succeeded}]
  startTime: "2021-12-31T23:59:45Z"
  podName: late-pod
`)
	run.Status.TaskSpec = run.Spec.TaskSpec
	run.Status.Steps = []v1.StepState{{Name: "s", ContainerState: seen}}
	pod, err := makePod(run, &v1.Task{Spec: *run.Spec.TaskSpec})
	if err != nil {
		t.Fatal(err)
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "step-s", State: now}}

	assets, cancel := getTaskRunController(t, test.Data{TaskRuns: []*v1.TaskRun{run}, Pods: []*corev1.Pod{pod}})
	defer cancel()
	createServiceAccount(t, assets, "default", run.Namespace)
	if err := assets.Controller.Reconciler.Reconcile(assets.Ctx, getRunName(run)); err != nil {
		t.Logf("reconciled with %v", err)
	}
	got, err := assets.Clients.Pipeline.TektonV1().TaskRuns(run.Namespace).Get(assets.Ctx, run.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	condition := got.Status.GetCondition(apis.ConditionSucceeded)
	if condition.Reason != v1.TaskRunReasonTimedOut.String() || !strings.HasSuffix(condition.Message, `within "10s"`+want) {
		t.Errorf("%s, %s; want a timeout that ends in %q", condition.Reason, condition.Message, want)
	}
}
