package upgrade

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/gates"
	"podenv.dev/test/e2e/internal/operate"
)

const apiServer = "kube-apiserver"

// server is an API server on the way.
type server struct {
	name  string
	gate  gates.State
	build string // stock or patched
}

var (
	stockServer = server{"the stock API server", gates.Unknown, stock}
	serverOff   = server{"the patched API server with the gate off", gates.Off, patched}
	serverOn    = server{"the patched API server with the gate on", gates.On, patched}
)

// serverWalk is the order in which the control plane runs them. It starts with the gate on.
var serverWalk = []server{stockServer, serverOff, serverOn, serverOff, stockServer, serverOn}

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), "while the API server goes up, down, up", func() {
		ginkgo.BeforeEach(operate.Require)
		f := framework.NewDefaultFramework("upgrade")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("objects keep the field while its gate is off; a stock one hides it, refuses updates, and loses it with the first write", func(ctx context.Context) {
			gates.Require(ctx, gate)
			node := controlPlane(ctx, f)
			o := objects{f}
			o.create(ctx, "untouched")
			o.create(ctx, "touched")
			for i := range serverWalk {
				o.create(ctx, doomed(i))
			}

			touched := false
			for i, s := range serverWalk {
				change(ctx, f, node, s)
				o.expectCreate(ctx, s, fmt.Sprintf("new-%d", i))
				o.expectKept(ctx, s, "untouched")
				if touched {
					o.expectLost(ctx, "touched")
				}
				if s == stockServer {
					ginkgo.By("writing the status of an object, as controllers and kubelets do all the time")
					o.writeStatus(ctx, "touched")
					touched = true
				}
				o.delete(ctx, doomed(i))
			}

			ginkgo.By("writing the lost variable anew")
			o.mend(ctx, "touched")
			o.expectKept(ctx, serverOn, "touched")
		})

		f.It("podenv audit names, before a downgrade, what the downgrade would lose", func(ctx context.Context) {
			gates.Require(ctx, gate)
			o := objects{f}
			o.create(ctx, "affected")
			_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, o.pod("unaffected", v1.EnvVar{Name: "A", Value: "1"}), metav1.CreateOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(operate.Audit(ctx, f.Namespace.Name)).To(gomega.ConsistOf("Pod/affected", "Deployment/affected"))
		})
	})

func doomed(i int) string { return fmt.Sprintf("doomed-%d", i) }

// controlPlane returns the node of the API server. At the spec's end the node is what it
// is now.
func controlPlane(ctx context.Context, f *framework.Framework) operate.Node {
	ginkgo.GinkgoHelper()
	list, err := f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: "node-role.kubernetes.io/control-plane"})
	framework.ExpectNoError(err)
	gomega.Expect(list.Items).To(gomega.HaveLen(1), "control planes")
	node := operate.Node(list.Items[0].Name)
	ginkgo.DeferCleanup(func(ctx context.Context) { node.Undo(ctx) })
	return node
}

// change makes s of the API server, and checks that it is.
func change(ctx context.Context, f *framework.Framework, node operate.Node, s server) {
	ginkgo.GinkgoHelper()
	ginkgo.By("changing to " + s.name)
	var changes []string
	if s.build == patched {
		changes = append(changes, fmt.Sprintf("%s=%t", gate, s.gate == gates.On))
	}
	node.Swap(ctx, apiServer, s.build+":"+operate.Options.Minor, changes...)
	state, err := gates.OfAPIServer(ctx, f.ClientSet, gate)
	framework.ExpectNoError(err)
	gomega.Expect(state).To(gomega.Equal(s.gate))
}
