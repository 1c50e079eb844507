// Package pods measures, on a cluster, what pods cost that take 100 variables from an env
// file, beside pods with a ConfigMap and with literal values: start latency and API
// requests. `make bench-cluster` runs it.
package pods

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gmeasure"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/featuregates"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster; without it nothing is measured")
	podCount   = flag.Int("pods", 50, "how many pods of each kind")
	results    = flag.String("results", "", "the file for the results in the Go benchmark format")
)

func TestPods(t *testing.T) {
	if *kubeconfig == "" {
		t.Skip("without -kubeconfig: make bench-cluster gives one")
	}
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "Pods with variables")
}

// podsTime is how long some pods have to run, or to go.
const podsTime = 5 * time.Minute

var _ = ginkgo.Describe("Pods with 100 variables", ginkgo.Ordered, func() {
	experiment := gmeasure.NewExperiment("pods with 100 variables")
	var client kubernetes.Interface
	var namespace string
	var quoted bool
	var watched *podWatch

	ginkgo.BeforeAll(func(ctx ginkgo.SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		config.QPS, config.Burst = 100, 200 // so that the client does not wait
		client = kubernetes.NewForConfigOrDie(config)
		info, err := client.Discovery().ServerVersion()
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		quoted, err = featuregates.QuotesEnvFiles(info.GitVersion)
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		made, err := client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "podenv-bench-"}}, metav1.CreateOptions{})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		namespace = made.Name
		ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) error {
			return client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		})
		_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(), metav1.CreateOptions{})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		// ctx ends with this node, and the watch with the specs.
		w, err := client.CoreV1().Pods(namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{})
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		watched = newPodWatch(w)
		ginkgo.DeferCleanup(w.Stop)
	})

	ginkgo.AfterAll(func() {
		ginkgo.AddReportEntry(experiment.Name, experiment)
		if *results != "" {
			gomega.Expect(write(*results, experiment)).To(gomega.Succeed())
		}
	})

	create := func(ctx ginkgo.SpecContext, s source, number int) string {
		ginkgo.GinkgoHelper()
		pod, err := client.CoreV1().Pods(namespace).Create(ctx, s.pod(number, quoted), metav1.CreateOptions{})
		gomega.Expect(err).NotTo(gomega.HaveOccurred(), "is the gate EnvFiles on in the API server?")
		return pod.Name
	}
	startDeletion := func(ctx ginkgo.SpecContext) {
		ginkgo.GinkgoHelper()
		gomega.Expect(client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})).To(gomega.Succeed())
	}
	awaitRunning := func(ctx ginkgo.SpecContext, names []string) {
		ginkgo.GinkgoHelper()
		gomega.Eventually(ctx, watched.waiting).WithArguments(names).WithTimeout(podsTime).WithPolling(20 * time.Millisecond).Should(gomega.BeEmpty())
	}

	// One pod of each source starts together, so that drift hits all alike. The time is from
	// the watch event with the pod's node to the first line of its main container.
	ginkgo.It("start", func(ctx ginkgo.SpecContext) {
		for number := range *podCount + 1 {
			names := make([]string, len(sources))
			for i := range sources { // another one is first in every round
				names[i] = create(ctx, sources[(i+number)%len(sources)], number)
			}
			awaitRunning(ctx, names)
			for i, name := range names {
				log, err := client.CoreV1().Pods(namespace).GetLogs(name, &v1.PodLogOptions{Container: mainContainer, Timestamps: true}).DoRaw(ctx)
				gomega.Expect(err).NotTo(gomega.HaveOccurred())
				started, err := parseFirstLine(string(log))
				gomega.Expect(err).NotTo(gomega.HaveOccurred())
				if number > 0 { // images are unpacked in the first round
					experiment.RecordDuration("start, "+sources[(i+number)%len(sources)].name, started.Sub(watched.scheduledAt(name)))
				}
			}
			startDeletion(ctx) // they go while the next ones start, as pods do on a cluster
		}
	})

	// All pods of one source start at once, by themselves. What the API server was asked until
	// all run and it has come to rest is theirs.
	ginkgo.It("make API requests", func(ctx ginkgo.SpecContext) {
		for kind, s := range sources {
			startDeletion(ctx) // of the source before
			gomega.Eventually(ctx, func() (int, error) {
				left, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 1})
				return len(left.Items), err
			}).WithTimeout(podsTime).Should(gomega.BeZero())
			before := settledRequests(ctx, client)
			names := make([]string, *podCount)
			for i := range names {
				names[i] = create(ctx, s, (kind+2)*(*podCount+1)+i) // a name that no round has used
			}
			awaitRunning(ctx, names)
			perPod := settledRequests(ctx, client).since(before).over(*podCount)
			experiment.RecordValue("API requests, "+s.name, perPod.sum(), gmeasure.Units("per pod"), gmeasure.Precision(2), gmeasure.Annotation(perPod.String()))
			experiment.RecordNote(fmt.Sprintf("API requests, %s: %s", s.name, perPod))
		}
	})
})

// write writes each start and the requests in the Go benchmark format, and the experiment's
// own table beside it.
func write(file string, e *gmeasure.Experiment) error {
	var lines strings.Builder
	for _, s := range sources {
		for _, took := range e.Get("start, " + s.name).Durations {
			fmt.Fprintf(&lines, "BenchmarkStart/by=%s 1 %d ns/op\n", s.name, took.Nanoseconds())
		}
		for _, n := range e.Get("API requests, " + s.name).Values {
			fmt.Fprintf(&lines, "BenchmarkAPIRequests/by=%s 1 %g requests/pod\n", s.name, n)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".txt")+".log", []byte(e.String()), 0o644)
}

// parseFirstLine returns when the main container printed its first line. What it printed
// must have the last variable: a pod without would have done less work.
func parseFirstLine(log string) (time.Time, error) {
	stamp, text, _ := strings.Cut(log, " ")
	started, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return time.Time{}, fmt.Errorf("its log has no time: %w", err)
	}
	key, value := variable(variables - 1)
	if want := key + "=" + value; !strings.Contains(text, want) {
		return time.Time{}, fmt.Errorf("the container did not see %s: is the gate EnvFiles on in the node's kubelet?", want)
	}
	return started, nil
}
