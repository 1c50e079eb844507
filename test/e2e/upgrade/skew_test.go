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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/expected"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

const (
	// special is a name that strict validation refuses.
	special = "Logging:Level"
	// specialKey is one too, and a key that every ConfigMap may have.
	specialKey = "1st.key"
	configMap  = "special"
	dumps      = "app"
)

// Every cell is a spec. What it expects is in its name, before it is run.
var _ = framework.SIGDescribe("node")("Version skew", framework.WithFeature(feature),
	framework.WithLabel("FeatureGate:"+gate), framework.WithLabel("FeatureGate:"+expected.Relaxed),
	framework.WithSerial(), framework.WithDisruptive(), func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("skew")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		ginkgo.Describe("of an API server and a kubelet", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
			minor := nodes.Options.Minor
			apiServers, kubelets := expected.Sides(minor, nodes.Options.Older)
			s := &walker{seen: map[string]string{}}

			ginkgo.BeforeAll(func(ctx context.Context) { s.begin(ctx, f, apiServers, kubelets) })
			ginkgo.AfterAll(func() {
				for _, feature := range expected.Features {
					suite.Report(expected.Matrix(feature.Gate, apiServers, kubelets, func(c expected.Cell) string { return s.seen[key(feature.Gate, c)] }))
				}
			})
			for _, a := range apiServers {
				for _, k := range kubelets {
					c := expected.Cell{APIServer: a, Kubelet: k}
					for _, feature := range expected.Features {
						want := feature.Want(c)
						ginkgo.It(fmt.Sprintf("%s: API server %s, kubelet %s: a new pod: %s, a stored one: %s", feature.Gate, a, k, want.Created, want.Stored), func(ctx context.Context) {
							s.enter(ctx, f, c)
							got := s.outcome(ctx, f, feature.Gate, c)
							s.seen[key(feature.Gate, c)] = got.String()
							gomega.Expect(got.Created).To(gomega.Equal(want.Created), "a new pod")
							gomega.Expect(got.Stored).To(gomega.Equal(want.Stored), "a pod that was stored with all gates on")
						})
					}
				}
			}
		})
	})

// walker is on the way through a matrix.
type walker struct {
	controlPlane, worker nodes.Node
	now                  expected.Cell
	stored               *framework.Framework // has the namespace of the pods that were stored before
	seen                 map[string]string    // outcomes by feature and cell
}

// key is the name of a cell for a feature.
func key(feature string, c expected.Cell) string {
	clean := strings.NewReplacer(" ", "-", ",", "", ".", "-")
	return strings.ToLower(clean.Replace(fmt.Sprintf("%s-%s-%s", feature[:3], c.APIServer, c.Kubelet)))
}

// begin stores the pods of all cells, while the API server has all gates on.
func (s *walker) begin(ctx context.Context, f *framework.Framework, apiServers, kubelets []expected.Runs) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	components.RequireGate(ctx, expected.Relaxed)
	s.controlPlane = controlPlane(ctx, f)
	s.worker = worker(ctx, f)

	namespace, err := f.ClientSet.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "skew-stored-", Labels: map[string]string{admissionapi.EnforceLevelLabel: string(admissionapi.LevelBaseline)},
	}}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(f.ClientSet.CoreV1().Namespaces().Delete, namespace.Name, metav1.DeleteOptions{})
	s.stored = &framework.Framework{BaseName: f.BaseName, ClientSet: f.ClientSet, Namespace: namespace, Timeouts: f.Timeouts}
	makeConfigMap(ctx, s.stored)
	gomega.Eventually(ctx, framework.RetryNotFound(framework.GetObject(f.ClientSet.CoreV1().ServiceAccounts(namespace.Name).Get, "default", metav1.GetOptions{}))).
		WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.BeNil())
	for _, a := range apiServers {
		for _, k := range kubelets {
			for _, feature := range expected.Features {
				pod := podOf(feature.Gate, key(feature.Gate, expected.Cell{APIServer: a, Kubelet: k}))
				// A scheduler that is not there: the cell's spec binds it.
				pod.Spec.SchedulerName = "podenv.dev/none"
				pods.Create(ctx, s.stored, pod)
			}
		}
	}
}

func makeConfigMap(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: map[string]string{specialKey: expected.Value},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// podOf is a pod that uses a feature.
func podOf(feature, name string) *v1.Pod {
	container := pods.Dumps(dumps, v1.EnvVar{Name: special, Value: expected.Value})
	container.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: configMap},
	}}}
	if feature == gate {
		container = pods.Dumps(dumps, from("REQUIRED", "KEY", false))
	}
	pod := pods.Once(name, container)
	if feature == gate {
		pod.Spec.InitContainers = []v1.Container{setup()}
		pod.Spec.Volumes = []v1.Volume{pods.EmptyDir(volume)}
	}
	return pod
}

// enter makes the cluster what a cell has, as far as it is not that yet.
func (s *walker) enter(ctx context.Context, f *framework.Framework, c expected.Cell) {
	ginkgo.GinkgoHelper()
	if s.now.APIServer != c.APIServer {
		s.now.APIServer = expected.Runs{}
		become(ctx, s.controlPlane, apiServer, c.APIServer)
		for _, name := range []string{expected.EnvFiles, expected.Relaxed} {
			state, err := components.GateOfAPIServer(ctx, f.ClientSet, name)
			framework.ExpectNoError(err)
			gomega.Expect(state).To(gomega.Equal(c.APIServer.Gate(name)), "the gate %s of the API server", name)
		}
		s.now.APIServer = c.APIServer
	}
	if s.now.Kubelet != c.Kubelet {
		s.now.Kubelet = expected.Runs{}
		become(ctx, s.worker, kubelet, c.Kubelet)
		for _, name := range []string{expected.EnvFiles, expected.Relaxed} {
			state, err := components.GateOfKubelet(ctx, f.ClientSet, string(s.worker), name)
			framework.ExpectNoError(err)
			gomega.Expect(state).To(gomega.Equal(c.Kubelet.Gate(name)), "the gate %s of the kubelet", name)
		}
		s.now.Kubelet = c.Kubelet
	}
}

// become has a node run a build of a component, with the gates as r has them.
func become(ctx context.Context, node nodes.Node, component string, r expected.Runs) {
	ginkgo.GinkgoHelper()
	var changes []string
	for _, name := range []string{expected.EnvFiles, expected.Relaxed} {
		switch {
		case r.Build == expected.Patched:
			changes = append(changes, fmt.Sprintf("%s=%t", name, r.Gate(name) == components.GateOn))
		case r.Gate(name) != components.GateUnknown:
			changes = append(changes, name+"-") // as the release has it
		}
	}
	node.Swap(ctx, component, fmt.Sprintf("%s:%s", r.Build, r.Minor), changes...)
}

// outcome makes a pod and has the kubelet take a stored one, both at the same time.
func (s *walker) outcome(ctx context.Context, f *framework.Framework, feature string, c expected.Cell) expected.Outcome {
	ginkgo.GinkgoHelper()
	makeConfigMap(ctx, f)
	pod := podOf(feature, "new")
	pod.Spec.NodeName = string(s.worker)
	_, err := pods.TryCreate(ctx, f, pod)
	got := expected.Outcome{Created: expected.Refused}
	if !apierrors.IsInvalid(err) {
		framework.ExpectNoError(err)
		got.Created = ""
	}
	stored := key(feature, c)
	framework.ExpectNoError(f.ClientSet.CoreV1().Pods(s.stored.Namespace.Name).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: stored}, Target: v1.ObjectReference{Kind: "Node", Name: string(s.worker)},
	}, metav1.CreateOptions{}))
	if got.Created == "" {
		got.Created = sees(ctx, f, feature, pod.Name)
	}
	got.Stored = sees(ctx, s.stored, feature, stored)
	return got
}

// sees is what a kubelet makes of a pod that it has got.
func sees(ctx context.Context, f *framework.Framework, feature, name string) string {
	ginkgo.GinkgoHelper()
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
		return expected.Waits
	}
	env := pods.Env(ctx, f, name, dumps)
	if feature != gate {
		gomega.Expect(env).To(gomega.HaveKeyWithValue(special, expected.Value))
		if env[specialKey] == expected.Value {
			return expected.Both
		}
		return expected.NameOnly
	}
	switch got, ok := env["REQUIRED"]; {
	case !ok:
		return expected.NotSet
	case got == "":
		return expected.Empty
	default:
		return got
	}
}
