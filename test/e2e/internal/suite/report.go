package suite

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
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

// reportFailures makes every framework that is created from now on report on its namespace
// when a spec fails: the events, each pod as kubectl describes it, what its containers
// printed, and the kubelet's last lines.
func reportFailures() {
	framework.NewFrameworkExtensions = append(framework.NewFrameworkExtensions, func(f *framework.Framework) {
		f.DumpAllNamespaceInfo = func(ctx context.Context, f *framework.Framework, namespace string) {
			reportNamespace(ctx, f.ClientSet, namespace)
		}
	})
}

// reportNamespace reports on everything in namespace. What it cannot read it reports as
// missing, with the reason: a report never hides the failure that it is about.
func reportNamespace(ctx context.Context, client kubernetes.Interface, namespace string) {
	addToReport("events of namespace "+namespace, func() (string, error) { return events(ctx, client, namespace) })

	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		addToReport("pods of namespace "+namespace, func() (string, error) { return "", err })
		return
	}
	var nodes []string
	for _, pod := range pods.Items {
		addToReport("describe pod "+pod.Name, func() (string, error) {
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
		addToReport("last lines of the kubelet of node "+node, func() (string, error) { return kubeletLog(ctx, node) })
	}
	addToReport("restarts in namespace "+metav1.NamespaceSystem, func() (string, error) { return restarts(ctx, client) })
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

// addToReport adds what get returns to the report of the running spec.
func addToReport(title string, get func() (string, error)) {
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
		addToReport(fmt.Sprintf("log of container %s of pod %s", status.Name, pod.Name), func() (string, error) {
			options := &v1.PodLogOptions{Container: status.Name, TailLines: ptr.To(int64(tailLines))}
			text, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx)
			return string(text), err
		})
	}
}

// kubeletLog returns the last lines that the kubelet of node logged. It reads the journal of
// a node that is a container of this machine, as kind's nodes are.
func kubeletLog(ctx context.Context, node string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "exec", node,
		"journalctl", "--unit=kubelet", "--no-pager", "--lines="+strconv.Itoa(tailLines)).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("journal of a kind node: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}
