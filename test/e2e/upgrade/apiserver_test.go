package upgrade

import (
	"context"
	"fmt"
	"maps"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
)

const apiServer = "kube-apiserver"

// serverWalk is the order in which the control plane runs API servers of minor. It starts
// with the gates on.
func serverWalk(minor string) []featuregates.Runs {
	stock := featuregates.Runs{Build: stock, Minor: minor}
	off, on := featuregates.Runs{Build: patched, Minor: minor}, featuregates.Runs{Build: patched, Minor: minor, On: true}
	return []featuregates.Runs{stock, off, on, off, stock, on}
}

var _ = framework.SIGDescribe("node")("Upgrade", framework.WithFeature(feature),
	framework.WithLabel("FeatureGate:"+gate), framework.WithLabel("FeatureGate:"+relaxed),
	framework.WithSerial(), framework.WithDisruptive(), "while the API server goes up, down, up", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("upgrade")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("objects keep their variables while the gates are off; a stock one that does not know fileKeyRef hides it, refuses updates, and loses it with the first write", func(ctx context.Context) {
			all := storedObjects(f)
			for _, o := range all {
				components.RequireGate(ctx, string(o.feature.Name))
			}
			node := controlPlane(ctx, f)
			walk := serverWalk(nodes.Options.Minor)
			for _, o := range all {
				o.create(ctx, "untouched")
				o.create(ctx, "touched")
				for i := range walk {
					o.create(ctx, doomed(i))
				}
			}

			before := map[string]map[string]state{} // a stock API server
			lost := map[string]map[string]bool{}
			for i, s := range walk {
				for _, o := range all {
					if name := o.named("untouched"); s.Build == stock {
						o.settle(ctx, "untouched")
						before[name] = o.states(ctx, "untouched")
					}
				}
				change(ctx, f, node, s)
				for _, o := range all {
					ginkgo.By(s.String() + ": " + string(o.feature.Name))
					if i > 0 && walk[i-1].Build == stock {
						maps.Copy(lost, map[string]map[string]bool{
							o.named("untouched"): o.lost(ctx, "untouched", before[o.named("untouched")]),
							o.named("touched"):   o.lost(ctx, "touched", nil),
						})
						written := lost[o.named("touched")]
						gomega.Expect(written[podKind] && written[deploymentKind]).To(gomega.Equal(o.rules(walk[i-1]).Loses), "what was written to is lost")
					}
					o.expectCreate(ctx, s, fmt.Sprintf("new-%d", i))
					o.expect(ctx, s, "untouched", lost[o.named("untouched")])
					o.expect(ctx, s, "touched", lost[o.named("touched")])
					if s.Build == stock {
						ginkgo.By("writing the status of an object, as controllers and kubelets do all the time")
						o.writeStatus(ctx, "touched")
					}
					o.delete(ctx, doomed(i))
				}
			}

			last := walk[len(walk)-1]
			for _, o := range all {
				if len(lost[o.named("touched")]) > 0 {
					ginkgo.By("writing the lost variable again: " + string(o.feature.Name))
					o.repair(ctx, "touched")
				}
				o.expect(ctx, last, "touched", nil)
			}
		})

		f.It("a controller that comes late with its status writes it through the stock one, and the field is lost if that does not know it; what nobody writes to keeps it", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			node := controlPlane(ctx, f)
			o := objectsOf(f, gate)
			o.create(ctx, "late")
			o.create(ctx, "unwritten")
			minor := nodes.Options.Minor

			ginkgo.By("changing a Deployment while the controller manager is stopped")
			const controllerManager = "--full '^kube-controller-manager '"
			node.Run(ctx, "pkill -STOP "+controllerManager)
			ginkgo.DeferCleanup(func(ctx context.Context) { _, _ = node.TryRun(ctx, "pkill -CONT "+controllerManager) })
			for _, err := range o.update(ctx, "late") {
				framework.ExpectNoError(err)
			}
			late, unwritten := o.states(ctx, "late"), o.states(ctx, "unwritten")
			between := featuregates.Runs{Build: stock, Minor: minor}
			change(ctx, f, node, between)
			node.Run(ctx, "pkill -CONT "+controllerManager)
			o.settle(ctx, "late")

			change(ctx, f, node, featuregates.Runs{Build: patched, Minor: minor, On: true})
			gomega.Expect(o.lost(ctx, "late", late)[deploymentKind]).To(gomega.Equal(o.rules(between).Loses))
			gomega.Expect(o.states(ctx, "late")[deploymentKind].writers).To(gomega.ContainElement(gomega.And(
				gomega.HaveField("Manager", "kube-controller-manager"), gomega.HaveField("Subresource", "status"))))
			o.lost(ctx, "unwritten", unwritten) // fails for an object that nobody has written to
		})

		f.It("kubectl podenv audit names, before a downgrade, what the downgrade would lose", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			o := objectsOf(f, gate)
			o.create(ctx, "affected")
			_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, gated("unaffected", v1.EnvVar{Name: "A", Value: "1"}), metav1.CreateOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(nodes.Audit(ctx, f.Namespace.Name)).To(gomega.ConsistOf("Pod/"+o.named("affected"), "Deployment/"+o.named("affected")))
		})
	})

func doomed(i int) string { return fmt.Sprintf("doomed-%d", i) }

// controlPlane returns the node of the API server. At the spec's end the node is what it
// is now.
func controlPlane(ctx context.Context, f *framework.Framework) nodes.Node {
	ginkgo.GinkgoHelper()
	node := controlPlaneNode(ctx, f)
	ginkgo.DeferCleanup(func(ctx context.Context) { node.Undo(ctx) })
	return node
}

func controlPlaneNode(ctx context.Context, f *framework.Framework) nodes.Node {
	ginkgo.GinkgoHelper()
	list, err := f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	framework.ExpectNoError(err)
	gomega.Expect(list.Items).To(gomega.HaveLen(1), "control planes")
	return nodes.Node(list.Items[0].Name)
}

// change makes s of the API server, and checks that it is.
func change(ctx context.Context, f *framework.Framework, node nodes.Node, s featuregates.Runs) {
	ginkgo.GinkgoHelper()
	ginkgo.By("changing to the API server " + s.String())
	become(ctx, node, apiServer, s)
	expectGates(s, "the API server", func(gate string) (featuregates.GateState, error) {
		return components.GateAt(ctx, f.ClientSet, gate, components.APIServerMetrics)
	})
}
