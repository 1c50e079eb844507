package expected

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/pods"
)

// CheckStates returns an error for each container of the workload in a state that it may not
// have, given the kubelets that may have started it, and for missing pods.
func CheckStates(all []v1.Pod, kubelets ...featuregates.Build) error {
	var wrong []error
	want := map[string]int32{}
	for _, d := range Workload("") {
		want[d.Name] = *d.Spec.Replicas
	}
	for _, pod := range all {
		want[pod.Labels["app"]]--
		if pod.DeletionTimestamp != nil {
			wrong = append(wrong, fmt.Errorf("pod %s is about to end", pod.Name))
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if state := pods.Status(&pod, c.Name).State; !allowed(c.Name, state, kubelets) {
				wrong = append(wrong, fmt.Errorf("container %s of pod %s is %s", c.Name, pod.Name, describe(state)))
			}
		}
	}
	for app, missing := range want {
		if missing != 0 {
			wrong = append(wrong, fmt.Errorf("%s lacks %d pods", app, missing))
		}
	}
	return errors.Join(wrong...)
}

// allowed reports whether a container may stay in a state.
func allowed(container string, state v1.ContainerState, kubelets []featuregates.Build) bool {
	done := state.Terminated != nil && state.Terminated.ExitCode == 0
	waits := func(reason string) bool { return state.Waiting != nil && state.Waiting.Reason == reason }
	switch {
	case container == setup || container == Init:
		return done
	case container == probed || strings.HasPrefix(container, "ends-"):
		return state.Running != nil || done || waits("CrashLoopBackOff")
	case container == incomplete:
		return slices.Contains(kubelets, featuregates.Patched) && waits(pods.ConfigError) ||
			slices.Contains(kubelets, featuregates.Stock) && state.Running != nil
	}
	return state.Running != nil
}

func describe(state v1.ContainerState) string {
	switch {
	case state.Running != nil:
		return "running"
	case state.Waiting != nil:
		return fmt.Sprintf("waiting: %s: %s", state.Waiting.Reason, state.Waiting.Message)
	case state.Terminated != nil:
		return fmt.Sprintf("terminated with %d: %s", state.Terminated.ExitCode, state.Terminated.Reason)
	}
	return "not there"
}
