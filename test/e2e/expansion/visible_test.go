package expansion

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// The log of a run has how many events of each reason were raised: with the gate on there
// are those about references, and no fewer of the others.
var _ = describeIf(whateverTheGate, "a pod with more unexpanded references than the kubelet lets pass warnings", func(f *framework.Framework) {
	f.It("still shows BackOff and Unhealthy", func(ctx context.Context) {
		var containers []v1.Container
		for i := range 30 { // each start can raise an event, and 25 warnings pass
			container := prints(nil, []string{"$(date)"})
			container.Name = fmt.Sprintf("prints-%d", i)
			containers = append(containers, container)
		}
		crashes, unready := prints(nil, nil), prints(nil, nil)
		crashes.Command = []string{"false", "$(date)"}
		unready.Name, unready.Command = "unready", []string{"sleep", "3600"}
		unready.ReadinessProbe = &v1.Probe{
			ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"false"}}},
			PeriodSeconds: 5,
		}
		pod := pods.Once("visible", append(containers, crashes, unready)...)
		pod.Spec.RestartPolicy = v1.RestartPolicyOnFailure
		pods.Create(ctx, f, pod)

		var events []v1.Event
		for reason, container := range map[string]string{"BackOff": crashes.Name, "Unhealthy": unready.Name} {
			events = awaitEvent(ctx, f, pod.Name, container+" has "+reason, func(event *v1.Event) bool {
				return event.Reason == reason && isAbout(event, container)
			})
		}
		for _, reason := range []string{unexpanded, "BackOff", "Unhealthy", started} {
			framework.Logf("events %s: %d", reason, countOf(reason, events))
		}
	})
})
