package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/describe"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/nodes"
)

// tailLines is how many lines of each log a report has.
const tailLines = 40

// reportFailures makes every new framework report on its namespace when a spec fails: the events,
// the description and container logs of each pod, the end of the kubelet's log, and the pods of
// kube-system that were restarted.
func reportFailures() {
	framework.NewFrameworkExtensions = append(framework.NewFrameworkExtensions, func(f *framework.Framework) {
		f.DumpAllNamespaceInfo = func(ctx context.Context, f *framework.Framework, namespace string) {
			reportNamespace(ctx, f.ClientSet, namespace)
		}
	})
}

// reportNamespace reports on namespace. If it cannot read something, it reports why, so that
// the report never hides the failure of the spec.
func reportNamespace(ctx context.Context, client kubernetes.Interface, namespace string) {
	addToReport("events of namespace "+namespace, func() (string, error) { return events(ctx, client, namespace) })

	var names []string
	for _, pod := range podsOf(ctx, client, namespace) {
		describePod(client, &pod)
		logs(ctx, client, &pod)
		if pod.Spec.NodeName != "" {
			names = append(names, pod.Spec.NodeName)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		addToReport("last lines of the kubelet of node "+name, func() (string, error) { return kubeletLog(ctx, name) })
	}
	// A pod that is not scheduled or not created waits for a pod of kube-system.
	for _, pod := range podsOf(ctx, client, metav1.NamespaceSystem) {
		if restarted(&pod) {
			describePod(client, &pod)
		}
	}
}

// kubeletLog reads the journal of a node that is a local container, as kind's nodes are.
func kubeletLog(ctx context.Context, node string) (string, error) {
	return nodes.Node(node).TryRun(ctx, fmt.Sprintf("journalctl --unit=kubelet --no-pager --lines=%d", tailLines))
}

func podsOf(ctx context.Context, client kubernetes.Interface, namespace string) []v1.Pod {
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		addToReport("pods of namespace "+namespace, func() (string, error) { return "", err })
		return nil
	}
	return pods.Items
}

func describePod(client kubernetes.Interface, pod *v1.Pod) {
	addToReport("describe pod "+pod.Name, func() (string, error) {
		describer := &describe.PodDescriber{Interface: client}
		return describer.Describe(pod.Namespace, pod.Name, describe.DescriberSettings{ShowEvents: true})
	})
}

func restarted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(status v1.ContainerStatus) bool {
		return status.RestartCount > 0 || status.State.Running == nil
	})
}

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

// logs reports the last lines of each container of pod. It skips containers that never ran: the
// description has their status.
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

// writeJUnit writes report to the file of --podenv.junit. Ginkgo's own --junit-report counts
// specs that were not selected as skipped. Here every test case is a spec that ran, one that
// says why it was skipped, or a failure outside of specs.
func writeJUnit(report ginkgo.Report) {
	report.SpecReports = slices.DeleteFunc(slices.Clone(report.SpecReports), func(spec types.SpecReport) bool {
		return !isTestCase(spec)
	})
	for i, spec := range report.SpecReports {
		if spec.FullText() == "" {
			report.SpecReports[i].LeafNodeText = spec.LeafNodeType.String()
		}
	}
	framework.ExpectNoError(os.MkdirAll(filepath.Dir(nodes.Options.JUnit), 0o755))
	framework.ExpectNoError(reporters.GenerateJSONReport(report, strings.TrimSuffix(nodes.Options.JUnit, ".xml")+".json")) // for podenv's page
	framework.ExpectNoError(reporters.GenerateJUnitReportWithConfig(report, nodes.Options.JUnit, reporters.JunitReportConfig{
		OmitLeafNodeType: true,
		OmitSpecLabels:   true, // the framework put them into the names already
	}))
}

func isTestCase(spec types.SpecReport) bool {
	if spec.LeafNodeType == types.NodeTypeSynchronizedBeforeSuite && spec.ParallelProcess > 1 {
		return false // it only says that process 1 failed, which has a report of its own
	}
	if spec.Failed() {
		return true
	}
	if spec.LeafNodeType != types.NodeTypeIt {
		return false
	}
	// --focus and --label-filter leave specs skipped without a message.
	return spec.State != types.SpecStateSkipped || spec.Failure.Message != ""
}

// Report adds text to the report that podenv shows with the results: a file next to the JUnit
// file, with the extension .md.
func Report(text string) {
	ginkgo.GinkgoHelper()
	ginkgo.GinkgoWriter.Println(text)
	if nodes.Options.JUnit == "" {
		return
	}
	framework.ExpectNoError(os.MkdirAll(filepath.Dir(nodes.Options.JUnit), 0o755))
	file, err := os.OpenFile(strings.TrimSuffix(nodes.Options.JUnit, ".xml")+".md", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	framework.ExpectNoError(err)
	_, err = file.WriteString(text + "\n")
	framework.ExpectNoError(errors.Join(err, file.Close()))
}
