// Package diagnose adds to the report of a failed spec what a person would ask for
// first: the events, each pod as kubectl describes it, what its containers printed,
// and the kubelet's last lines.
package diagnose

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/describe"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"
)

// tailLines is how much of each log a report has.
const tailLines = 40

// Install makes every framework that is made from now on report on its namespace
// when a spec fails.
func Install() {
	framework.NewFrameworkExtensions = append(framework.NewFrameworkExtensions, func(f *framework.Framework) {
		f.DumpAllNamespaceInfo = func(ctx context.Context, f *framework.Framework, namespace string) {
			Namespace(ctx, f.ClientSet, namespace)
		}
	})
}

// Namespace reports on everything in namespace. What cannot be had is reported as
// missing, with the reason: a report never hides the failure that it is about.
func Namespace(ctx context.Context, client kubernetes.Interface, namespace string) {
	add("events of namespace "+namespace, func() (string, error) { return events(ctx, client, namespace) })

	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		add("pods of namespace "+namespace, func() (string, error) { return "", err })
		return
	}
	var nodes []string
	for _, pod := range pods.Items {
		add("describe pod "+pod.Name, func() (string, error) {
			describer := &describe.PodDescriber{Interface: client}
			return describer.Describe(namespace, pod.Name, describe.DescriberSettings{ShowEvents: true})
		})
		logs(ctx, client, &pod)
		if pod.Spec.NodeName != "" {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		add("last lines of the kubelet of node "+node, func() (string, error) { return kubeletLog(ctx, client, node) })
	}
	add("restarts in namespace "+metav1.NamespaceSystem, func() (string, error) { return restarts(ctx, client) })
}

// restarts lists the containers of the cluster's own pods that were restarted or do not
// run: what is not scheduled, or not created, waits for one of them.
func restarts(ctx context.Context, client kubernetes.Interface) (string, error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, pod := range pods.Items {
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount == 0 && status.State.Running != nil {
				continue
			}
			fmt.Fprintf(&out, "%s: %s: %d restarts", pod.Name, status.Name, status.RestartCount)
			if running := status.State.Running; running != nil {
				fmt.Fprintf(&out, ", runs since %s", running.StartedAt.UTC().Format(time.TimeOnly))
			}
			if waiting := status.State.Waiting; waiting != nil {
				fmt.Fprintf(&out, ", waits: %s: %s", waiting.Reason, waiting.Message)
			}
			if last := status.LastTerminationState.Terminated; last != nil {
				fmt.Fprintf(&out, ", ended at %s: %s, exit code %d", last.FinishedAt.UTC().Format(time.TimeOnly), last.Reason, last.ExitCode)
			}
			fmt.Fprintln(&out)
		}
	}
	return out.String(), nil
}

// add adds what get returns to the report of the running spec.
func add(title string, get func() (string, error)) {
	text, err := get()
	if err != nil {
		text = strings.TrimSpace(fmt.Sprintf("%s\nnot available: %v", text, err))
	}
	ginkgo.AddReportEntry(title, "\n"+text, ginkgo.ReportEntryVisibilityFailureOrVerbose)
}

// events lists the events of namespace, oldest first.
func events(ctx context.Context, client kubernetes.Interface, namespace string) (string, error) {
	list, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(list.Items, func(a, b v1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	var out strings.Builder
	for _, event := range list.Items {
		fmt.Fprintf(&out, "%s  %-7s  %s %s  %s  %s  (x%d)\n", event.LastTimestamp.UTC().Format("15:04:05"), event.Type,
			event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message, max(event.Count, 1))
	}
	return out.String(), nil
}

// logs reports what each container of pod printed last. A container that never ran
// has no log, which its status in the description says already.
func logs(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses) {
		if status.ContainerID == "" {
			continue
		}
		add(fmt.Sprintf("log of container %s of pod %s", status.Name, pod.Name), func() (string, error) {
			options := &v1.PodLogOptions{Container: status.Name, TailLines: ptr.To(int64(tailLines))}
			text, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			return string(text), err
		})
	}
}
