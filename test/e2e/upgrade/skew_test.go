package upgrade

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/e2e/options"
	"podenv.dev/test/manifests"
)

const dumps = "app"

// Every cell is a spec. What it expects is in its name, before it is run.
var _ = framework.SIGDescribe("node")("Version skew", framework.WithFeature(feature),
	framework.WithLabel("FeatureGate:"+gate), framework.WithLabel("FeatureGate:"+relaxed),
	framework.WithSerial(), framework.WithDisruptive(), func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("skew")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		ginkgo.Describe("of an API server and a kubelet", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
			apiServers, kubelets := featuregates.Sides(nodes.Options.Minor, nodes.Options.Older)
			s := &walker{seen: map[string]string{}, features: probed()}

			ginkgo.BeforeAll(func(ctx context.Context) { s.begin(ctx, f, apiServers, kubelets) })
			ginkgo.AfterAll(func() {
				for _, feature := range s.features {
					suite.Report(featuregates.Matrix(string(feature.Name), apiServers, kubelets, func(c featuregates.Cell) string { return s.seen[key(feature, c)] }))
					ginkgo.AddReportEntry(options.TableEntry, s.table(feature, apiServers, kubelets), ginkgo.ReportEntryVisibilityNever)
				}
			})
			for _, a := range apiServers {
				for _, k := range kubelets {
					c := featuregates.Cell{APIServer: a, Kubelet: k}
					for _, feature := range s.features {
						want := feature.Probe.Want(c)
						ginkgo.It(fmt.Sprintf("%s: API server %s, kubelet %s: a new pod: %s, a stored one: %s", feature.Name, a, k, want.Created, want.Stored), func(ctx context.Context) {
							s.enter(ctx, f, c)
							got := s.outcome(ctx, feature, c)
							s.seen[key(feature, c)] = got.String()
							gomega.Expect(got.Created).To(gomega.Equal(want.Created), "a new pod")
							gomega.Expect(got.Stored).To(gomega.Equal(want.Stored), "a pod that was stored with all gates on")
						})
					}
				}
			}
		})
	})

// probed lists the features of the cluster's minor that have a probe; none where the suite
// operates no nodes.
func probed() []featuregates.State {
	if nodes.Options.Minor == "" {
		return nil
	}
	states, err := featuregates.Probed(nodes.Options.Minor)
	framework.ExpectNoError(err)
	return states
}

// walker is on the way through a matrix.
type walker struct {
	controlPlane, worker nodes.Node
	now                  featuregates.Cell
	stored               *framework.Framework // has the namespace of the pods that were stored before
	seen                 map[string]string    // outcomes by feature and cell
	features             []featuregates.State
}

// table is a matrix with the cells that are as they should be, and those that are not.
func (s *walker) table(feature featuregates.State, apiServers, kubelets []featuregates.Runs) options.Table {
	t := options.Table{Title: "Version skew, " + string(feature.Name) + ": a new pod / a stored one", Head: []string{"API server, kubelet →"}}
	for _, k := range kubelets {
		t.Head = append(t.Head, k.String())
	}
	for _, a := range apiServers {
		row := []options.Cell{{Text: a.String()}}
		for _, k := range kubelets {
			c := featuregates.Cell{APIServer: a, Kubelet: k}
			saw, want := s.seen[key(feature, c)], feature.Probe.Want(c).String()
			switch saw {
			case want:
				row = append(row, options.Cell{Text: saw, State: "passed"})
			case "":
				row = append(row, options.Cell{Text: "not seen"})
			default:
				row = append(row, options.Cell{Text: saw + ", not " + want, State: "failed"})
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// key is the name of a cell for a feature.
func key(feature featuregates.State, c featuregates.Cell) string {
	clean := strings.NewReplacer(" ", "-", ",", "", ".", "-")
	return strings.ToLower(clean.Replace(fmt.Sprintf("%s-%s-%s", feature.Name[:3], c.APIServer, c.Kubelet)))
}

// begin stores the pods of all cells, while the API server has all gates on.
func (s *walker) begin(ctx context.Context, f *framework.Framework, apiServers, kubelets []featuregates.Runs) {
	ginkgo.GinkgoHelper()
	for _, feature := range s.features {
		components.RequireGate(ctx, string(feature.Name))
	}
	s.controlPlane = controlPlane(ctx, f)
	s.worker = worker(ctx, f)

	namespace, err := f.ClientSet.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "skew-stored-", Labels: map[string]string{admissionapi.EnforceLevelLabel: string(admissionapi.LevelBaseline)},
	}}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(f.ClientSet.CoreV1().Namespaces().Delete, namespace.Name, metav1.DeleteOptions{})
	s.stored = &framework.Framework{BaseName: f.BaseName, ClientSet: f.ClientSet, DynamicClient: f.DynamicClient, Namespace: namespace, Timeouts: f.Timeouts}
	gomega.Eventually(ctx, framework.RetryNotFound(framework.GetObject(f.ClientSet.CoreV1().ServiceAccounts(namespace.Name).Get, "default", metav1.GetOptions{}))).
		WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.BeNil())
	for _, feature := range s.features {
		s.prepare(ctx, feature)
		for _, a := range apiServers {
			for _, k := range kubelets {
				pod := probe(feature, key(feature, featuregates.Cell{APIServer: a, Kubelet: k}))
				// A scheduler that is not there: the cell's spec binds it.
				pod.Spec.SchedulerName = "podenv.dev/none"
				pods.Create(ctx, s.stored, pod)
			}
		}
	}
}

// prepare makes what the probe of a feature needs. The API server watches what changes the pod itself, so
// prepare waits until it does.
func (s *walker) prepare(ctx context.Context, feature featuregates.State) {
	ginkgo.GinkgoHelper()
	for _, file := range feature.Probe.Objects {
		object, err := manifests.Object(file)
		framework.ExpectNoError(err)
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		_, err = s.stored.DynamicClient.Resource(resource).Namespace(s.stored.Namespace.Name).Create(ctx, object, metav1.CreateOptions{})
		framework.ExpectNoError(err)
	}
	if len(feature.Probe.Objects) == 0 {
		return
	}
	gomega.Eventually(ctx, func(ctx context.Context) (string, error) {
		pod, err := s.stored.ClientSet.CoreV1().Pods(s.stored.Namespace.Name).Create(ctx, probe(feature, "probe"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		env := map[string]string{}
		for _, v := range pod.Spec.Containers[0].Env {
			env[v.Name] = v.Value
		}
		return feature.Probe.Saw(featuregates.Sight{Env: env}), err
	}).WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.Equal(feature.Probe.Saw(featuregates.Sight{})))
}

// probe is the pod of a feature's probe, called name.
func probe(feature featuregates.State, name string) *v1.Pod {
	ginkgo.GinkgoHelper()
	pod, err := manifests.Pod(feature.Probe.Pod)
	framework.ExpectNoError(err)
	pod.Name = name
	return pod
}

// enter makes the cluster what a cell has, as far as it is not that yet.
func (s *walker) enter(ctx context.Context, f *framework.Framework, c featuregates.Cell) {
	ginkgo.GinkgoHelper()
	if s.now.APIServer != c.APIServer {
		s.now.APIServer = featuregates.Runs{}
		become(ctx, s.controlPlane, apiServer, c.APIServer)
		expectGates(c.APIServer, "the API server", func(gate string) (featuregates.GateState, error) {
			return components.GateAt(ctx, f.ClientSet, gate, components.APIServerMetrics)
		})
		s.now.APIServer = c.APIServer
	}
	if s.now.Kubelet != c.Kubelet {
		s.now.Kubelet = featuregates.Runs{}
		become(ctx, s.worker, kubelet, c.Kubelet)
		expectGates(c.Kubelet, "the kubelet", func(gate string) (featuregates.GateState, error) {
			return components.GateAt(ctx, f.ClientSet, gate, components.KubeletMetrics(string(s.worker)))
		})
		s.now.Kubelet = c.Kubelet
	}
}

// expectGates checks that a component reports the gates that r has.
func expectGates(r featuregates.Runs, component string, report func(gate string) (featuregates.GateState, error)) {
	ginkgo.GinkgoHelper()
	for _, feature := range probed() {
		state, err := report(string(feature.Name))
		framework.ExpectNoError(err)
		gomega.Expect(state).To(gomega.Equal(r.Gate(feature.Name)), "the gate %s of %s", feature.Name, component)
	}
}

// become has a node run a build of a component, with the gates as r has them.
func become(ctx context.Context, node nodes.Node, component string, r featuregates.Runs) {
	ginkgo.GinkgoHelper()
	var changes []string
	for _, feature := range probed() {
		switch state := r.Gate(feature.Name); {
		case r.Build == featuregates.Patched:
			changes = append(changes, fmt.Sprintf("%s=%t", feature.Name, state == featuregates.GateOn))
		case state != featuregates.GateUnknown:
			changes = append(changes, string(feature.Name)+"-") // as the release has it
		}
	}
	node.Swap(ctx, component, fmt.Sprintf("%s:%s", r.Build, r.Minor), changes...)
}

// outcome makes a pod and has the kubelet take a stored one, both at the same time.
func (s *walker) outcome(ctx context.Context, feature featuregates.State, c featuregates.Cell) featuregates.Outcome {
	ginkgo.GinkgoHelper()
	stored := key(feature, c)
	pod := probe(feature, "new-"+stored)
	pod.Spec.NodeName = string(s.worker)
	_, err := pods.TryCreate(ctx, s.stored, pod)
	got := featuregates.Outcome{Created: featuregates.Refused}
	if !apierrors.IsInvalid(err) {
		framework.ExpectNoError(err)
		got.Created = ""
	}
	framework.ExpectNoError(s.stored.ClientSet.CoreV1().Pods(s.stored.Namespace.Name).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: stored}, Target: v1.ObjectReference{Kind: "Node", Name: string(s.worker)},
	}, metav1.CreateOptions{}))
	if got.Created == "" {
		got.Created = s.sees(ctx, feature, pod.Name)
	}
	got.Stored = s.sees(ctx, feature, stored)
	return got
}

// sees is what a kubelet makes of a pod that it has got.
func (s *walker) sees(ctx context.Context, feature featuregates.State, name string) string {
	ginkgo.GinkgoHelper()
	f := s.stored
	refusedSince := time.Time{}
	last := pods.Await(ctx, f, name, "its container to end, or to wait for good", func(pod *v1.Pod) bool {
		status := pods.Status(pod, dumps)
		switch {
		case status.State.Waiting == nil || status.State.Waiting.Reason != pods.ConfigError:
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
		}
		return status.State.Terminated != nil || !refusedSince.IsZero() && time.Since(refusedSince) > settle
	})
	if pods.Status(last, dumps).State.Terminated == nil {
		return featuregates.Waits
	}
	saw := featuregates.Sight{Env: pods.Env(ctx, f, name, dumps)}
	// The kubelet sends its events in the order in which it raises them, that of the container's start last.
	gomega.Eventually(ctx, func(ctx context.Context) (started bool, err error) {
		events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String()})
		saw.Events = nil
		for _, event := range events.Items {
			saw.Events = append(saw.Events, event.Reason)
			started = started || event.Reason == "Started" && event.InvolvedObject.FieldPath == "spec.containers{"+dumps+"}"
		}
		return started, err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeTrue(), "pod %s: the event that its container was started", name)
	return feature.Probe.Saw(saw)
}
