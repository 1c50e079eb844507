package expected

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/pods"
)

var (
	running = v1.ContainerState{Running: &v1.ContainerStateRunning{}}
	ended   = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
	failed  = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: 1}}
)

func waits(reason string) v1.ContainerState {
	return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}
}

// workloadWith are the workload's pods as they should be on a patched kubelet, but for one
// container.
func workloadWith(container string, state v1.ContainerState) (all []v1.Pod) {
	states := map[string]v1.ContainerState{setup: ended, Init: ended, probed: waits("CrashLoopBackOff"), incomplete: waits(pods.ConfigError), "ends-0": ended}
	states[container] = state
	for _, d := range Workload("node") {
		for i := range *d.Spec.Replicas {
			pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.Name, i), Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				s, ok := states[c.Name]
				if !ok {
					s = running
				}
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{Name: c.Name, State: s})
			}
			all = append(all, pod)
		}
	}
	return all
}

func TestCheckStates(t *testing.T) {
	for name, test := range map[string]struct {
		container string
		state     v1.ContainerState
		kubelets  []featuregates.Build
		want      string // in the error; empty: none
	}{
		"all is as it should be":                       {Regular, running, []featuregates.Build{featuregates.Patched}, ""},
		"what ends, ends":                              {"ends-0", ended, []featuregates.Build{featuregates.Patched}, ""},
		"what ends waits for its next start":           {"ends-0", waits("CrashLoopBackOff"), []featuregates.Build{featuregates.Patched}, ""},
		"what lacks a key runs on a stock kubelet":     {incomplete, running, []featuregates.Build{featuregates.Stock}, ""},
		"what lacks a key runs since a stock kubelet":  {incomplete, running, []featuregates.Build{featuregates.Patched, featuregates.Stock}, ""},
		"what lacks a key waits, and may run":          {incomplete, waits(pods.ConfigError), []featuregates.Build{featuregates.Patched, featuregates.Stock}, ""},
		"what lacks a key runs":                        {incomplete, running, []featuregates.Build{featuregates.Patched}, "container incomplete of pod lacks-a-key-0 is running"},
		"what lacks a key waits, on a stock kubelet":   {incomplete, waits(pods.ConfigError), []featuregates.Build{featuregates.Stock}, "waiting: CreateContainerConfigError"},
		"what lacks a key waits with a wrong reason":   {incomplete, waits("CreateContainerError"), []featuregates.Build{featuregates.Patched}, "waiting: CreateContainerError"},
		"what goes on has ended":                       {Sidecar, ended, []featuregates.Build{featuregates.Patched}, "container sidecar of pod goes-on-0 is terminated"},
		"what goes on waits with its own right reason": {Regular, waits(pods.ConfigError), []featuregates.Build{featuregates.Patched}, "container regular"},
		"what ends has failed":                         {"ends-0", failed, []featuregates.Build{featuregates.Patched}, "terminated with 1"},
		"what ends is refused":                         {"ends-0", waits(pods.ConfigError), []featuregates.Build{featuregates.Patched}, "container ends-0"},
		"an init container has failed":                 {Init, failed, []featuregates.Build{featuregates.Patched}, "container init"},
		"an init container has not run":                {Init, waits("PodInitializing"), []featuregates.Build{featuregates.Patched}, "container init"},
		"the writer waits":                             {Writer, waits("CrashLoopBackOff"), []featuregates.Build{featuregates.Patched}, "container writer"},
		"a container without a state":                  {Regular, v1.ContainerState{}, []featuregates.Build{featuregates.Patched}, "not there"},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, CheckStates(workloadWith(test.container, test.state), test.kubelets...), test.want)
		})
	}
	t.Run("a pod is missing", func(t *testing.T) {
		expect(t, CheckStates(workloadWith(Regular, running)[1:], featuregates.Patched), "goes-on lacks 1 pods")
	})
	t.Run("a pod is about to end", func(t *testing.T) {
		all := workloadWith(Regular, running)
		all[0].DeletionTimestamp = &metav1.Time{}
		expect(t, CheckStates(all, featuregates.Patched), "about to end")
	})
}

func expect(t testing.TB, err error, want string) {
	t.Helper()
	if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}
