package upgrade

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"golang.org/x/mod/semver"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
)

const (
	gate    = "EnvFiles"
	relaxed = "RelaxedEnvironmentVariableValidation"
	kubelet = "kubelet"

	// stock is a release without this branch's patches, of the minor before the cluster's where
	// there is one; patched is the cluster's own.
	stock   = "stock"
	patched = "patched"
)

var feature = framework.ValidFeatures.Add("EnvFiles")

// given is what the containers of a workload get from a kubelet.
type given struct {
	// env are the variables that come from env files; one that is not there is not set.
	env map[string]string
	// startsIncomplete says whether a container starts that requires a key that is missing.
	startsIncomplete bool
}

// kubelets is what a kubelet gives, by what it says of the gate. To one that does not know the
// field, what is left of the variable has neither a value nor a source, so it is empty.
var kubelets = map[featuregates.GateState]given{
	featuregates.GateUnknown: {
		env:              map[string]string{"REQUIRED": "", "OPTIONAL": "", "OPTIONAL_MISSING": ""},
		startsIncomplete: true,
	},
	featuregates.GateOn: {
		env: map[string]string{"REQUIRED": "value", "OPTIONAL": "value"},
	},
}

// kubeletGate is what the kubelet of a build says of the gate: on where the build knows it,
// since the setting stays with the component.
func kubeletGate(build, minor string) featuregates.GateState {
	if (featuregates.Runs{Build: featuregates.Build(build), Minor: minor}).Gate(gate) == featuregates.GateUnknown {
		return featuregates.GateUnknown
	}
	return featuregates.GateOn
}

// walk is the order in which a node runs the builds.
var walk = []string{stock, patched, stock, patched}

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), "while the kubelet goes up, down, up", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("upgrade")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("on a drained node, as KEP-3721 has it: what runs there next gets what its kubelet gives", func(ctx context.Context) {
			node, minors := start(ctx, f)
			w := newWorkload(ctx, f)
			w.expect(ctx, kubelets[featuregates.GateOn])
			for _, build := range walk {
				node.Drain(ctx)
				swap(ctx, f, node, build, minors[build])
				node.Uncordon(ctx)
				w.expect(ctx, kubelets[kubeletGate(build, minors[build])])
			}
		})

		f.It("in place: what runs goes on as it was, what starts gets what its kubelet gives", func(ctx context.Context) {
			node, minors := start(ctx, f)
			w := newWorkload(ctx, f)
			w.expect(ctx, kubelets[featuregates.GateOn])
			last := patched
			for _, build := range walk {
				before := w.running(ctx)
				swap(ctx, f, node, build, minors[build])
				if keepContainers(minors[last], minors[build]) {
					w.expectSame(ctx, before)
				} else {
					w.expectOthers(ctx, before)
				}
				last = build
				ginkgo.By("replacing the pods")
				w.replace(ctx)
				w.expect(ctx, kubelets[kubeletGate(build, minors[build])])
			}
		})
	})

// keepContainers reports whether a kubelet of one minor leaves alone what one of the other has
// started. Before v1.31 it compares a hash of all that it knows of a container, so that
// containers with the field are restarted by whoever knows the field when the other does not.
// Later ones compare name and image.
func keepContainers(minor, other string) bool {
	const hashesNameAndImage = "v1.31"
	return semver.Compare(minor, hashesNameAndImage) >= 0 && semver.Compare(other, hashesNameAndImage) >= 0
}

// start returns the node to walk with, whose kubelet has the gate on, as has the API
// server all the way, and the minor of each build. At the spec's end the node is what it
// is now.
func start(ctx context.Context, f *framework.Framework) (nodes.Node, map[string]string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	minors := map[string]string{stock: nodes.Options.Minor, patched: nodes.Options.Minor}
	if older := nodes.Options.Older; len(older) > 0 {
		minors[stock] = older[len(older)-1]
	}
	return worker(ctx, f), minors
}

// worker returns a node that takes pods, once the controllers see it as it is. At the
// spec's end it is what it is now.
func worker(ctx context.Context, f *framework.Framework) (node nodes.Node) {
	ginkgo.GinkgoHelper()
	refreshControllers(ctx, f)
	gomega.Eventually(ctx, func(ctx context.Context) error {
		object, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
		if err == nil {
			node = nodes.Node(object.Name)
		}
		return err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	ginkgo.DeferCleanup(func(ctx context.Context) { node.Undo(ctx) })
	return node
}

// swap has node run a build of the kubelet, and checks that the gate is what it should be
// there, without being set again.
func swap(ctx context.Context, f *framework.Framework, node nodes.Node, build, minor string) {
	ginkgo.GinkgoHelper()
	node.Swap(ctx, kubelet, build+":"+minor)
	gomega.Expect(node.Version(ctx, kubelet)).To(gomega.HavePrefix(minor + "."))
	state, err := components.GateAt(ctx, f.ClientSet, gate, components.KubeletMetrics(string(node)))
	framework.ExpectNoError(err)
	gomega.Expect(state).To(gomega.Equal(kubeletGate(build, minor)), "the gate %s of the kubelet of node %s", gate, node)
}
