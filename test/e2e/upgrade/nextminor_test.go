package upgrade

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
)

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(), "when the cluster goes on to newer minors with this branch's patches, one at a time, the control plane before the kubelet,", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("minor")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("nothing rolls, no object loses a field, and every environment is one that its file gives", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			minor := nodes.Options.Minor
			if len(nodes.Options.Newer) == 0 {
				ginkgo.Skip("patches/ has no release of the minor after " + minor)
			}
			server, node := controlPlane(ctx, f), worker(ctx, f)
			l := newLoad(ctx, f, node)
			s := setsApart(ctx, f)
			s.create(ctx)
			s.settle(ctx)
			templates, setPods := s.templates(ctx), s.pods(ctx)
			expectUnchanged := func() {
				ginkgo.GinkgoHelper()
				s.touch(ctx)
				s.settle(ctx)
				gomega.Expect(s.templates(ctx)).To(gomega.Equal(templates))
				gomega.Expect(s.pods(ctx)).To(gomega.Equal(setPods))
			}

			for _, newer := range nodes.Options.Newer {
				before := l.goingOn(ctx)
				for _, component := range []string{apiServer, "kube-controller-manager", "kube-scheduler"} {
					server.Swap(ctx, component, patched+":"+newer)
					gomega.Expect(server.Version(ctx, component)).To(gomega.HavePrefix(newer + "."))
					l.expectSame(ctx, before)
				}
				state, err := components.GateAt(ctx, f.ClientSet, gate, components.APIServerMetrics)
				framework.ExpectNoError(err)
				gomega.Expect(state).To(gomega.Equal(featuregates.GateOn), "the gate of the API server")

				ginkgo.By("checking what the kubelet of " + minor + " does under the control plane of " + newer)
				l.expectWell(ctx, featuregates.Patched)
				expectUnchanged()

				ginkgo.By("going on to the kubelet of " + newer)
				l.stepInPlace(ctx, patched, newer)
				l.expectWell(ctx, featuregates.Patched)
				expectUnchanged()
				minor = newer
			}
		})
	})
