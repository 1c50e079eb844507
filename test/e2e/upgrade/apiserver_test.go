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

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/expected"
	"podenv.dev/test/e2e/internal/nodes"
)

const apiServer = "kube-apiserver"

// serverWalk is the order in which the control plane runs API servers of minor. It starts
// with the gates on.
func serverWalk(minor string) []expected.Runs {
	stock := expected.Runs{Build: stock, Minor: minor}
	off, on := expected.Runs{Build: patched, Minor: minor}, expected.Runs{Build: patched, Minor: minor, On: true}
	return []expected.Runs{stock, off, on, off, stock, on}
}

var _ = framework.SIGDescribe("node")("Upgrade", framework.WithFeature(feature),
	framework.WithLabel("FeatureGate:"+expected.EnvFiles), framework.WithLabel("FeatureGate:"+expected.Relaxed),
	framework.WithSerial(), framework.WithDisruptive(), "while the API server goes up, down, up", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("upgrade")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("objects keep their variables while the gates are off; a stock one hides fileKeyRef, refuses updates, and loses it with the first write", func(ctx context.Context) {
			components.RequireGate(ctx, expected.EnvFiles)
			components.RequireGate(ctx, expected.Relaxed)
			node := controlPlane(ctx, f)
			all := []objects{{f, envFileVariables}, {f, specialNames}}
			walk := serverWalk(nodes.Options.Minor)
			for _, o := range all {
				o.create(ctx, "untouched")
				o.create(ctx, "touched")
				for i := range walk {
					o.create(ctx, doomed(i))
				}
			}

			lost := map[string]bool{}
			for i, s := range walk {
				change(ctx, f, node, s)
				for _, o := range all {
					ginkgo.By(s.String() + ": " + o.about)
					o.expectCreate(ctx, s, fmt.Sprintf("new-%d", i))
					o.expectKept(ctx, s, "untouched")
					if lost[o.about] {
						o.expectLost(ctx, "touched")
					} else {
						o.expectKept(ctx, s, "touched")
					}
					if s.Build == stock {
						ginkgo.By("writing the status of an object, as controllers and kubelets do all the time")
						o.writeStatus(ctx, "touched")
						lost[o.about] = lost[o.about] || o.rules(s).loses
					}
					o.delete(ctx, doomed(i))
				}
			}

			last := walk[len(walk)-1]
			for _, o := range all {
				if lost[o.about] {
					ginkgo.By("writing the lost variable anew: " + o.about)
					o.mend(ctx, "touched")
				}
				o.expectKept(ctx, last, "touched")
			}
			gomega.Expect(lost).To(gomega.Equal(map[string]bool{envFileVariables.about: true, specialNames.about: false}))
		})

		f.It("podenv audit names, before a downgrade, what the downgrade would lose", func(ctx context.Context) {
			components.RequireGate(ctx, expected.EnvFiles)
			o := objects{f, envFileVariables}
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
func change(ctx context.Context, f *framework.Framework, node nodes.Node, s expected.Runs) {
	ginkgo.GinkgoHelper()
	ginkgo.By("changing to the API server " + s.String())
	become(ctx, node, apiServer, s)
	for _, name := range []string{expected.EnvFiles, expected.Relaxed} {
		state, err := components.GateOfAPIServer(ctx, f.ClientSet, name)
		framework.ExpectNoError(err)
		gomega.Expect(state).To(gomega.Equal(s.Gate(name)), "the gate %s of the API server", name)
	}
}
