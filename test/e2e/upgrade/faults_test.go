package upgrade

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/upgrade/expected"
)

// kills is how often the kubelet is killed, and restarts how often containerd is restarted.
const (
	kills    = 5
	restarts = 2
)

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(),
	"after a fault every pod runs or waits with the right reason, no environment is wrong or mixed, and no object has lost a field:", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("faults")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("the kubelet is killed between reading a file and starting the container, again and again", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			l := newLoad(ctx, f, worker(ctx, f))
			before := l.goingOn(ctx)
			hits := 0
			for n := range kills {
				hits += strings.Count(l.atCreation(ctx, n%4+1, killKubelet), notStarted)
				l.collect(ctx)
			}
			framework.Logf("of %d kubelets %d had not started the container yet", kills, hits)
			gomega.Expect(hits).NotTo(gomega.BeZero(), "no kubelet was killed in time")
			l.expectSame(ctx, before)
			l.expectWell(ctx, featuregates.Patched)
		})

		f.It("the kubelet is killed while podenv swaps it", func(ctx context.Context) {
			node, minors := start(ctx, f)
			l := newLoad(ctx, f, node)
			before := l.goingOn(ctx)
			// Whether a swap gets over it is its own affair, so long as it says so.
			_ = l.swapAndKill(ctx, stock, minors[stock], killBeforeTurn)
			_ = l.swapAndKill(ctx, patched, minors[patched], killAfterTurn)
			gomega.Expect(l.swapAndKill(ctx, stock, minors[stock], killEachNew)).To(gomega.HaveOccurred(), "no build serves that is always killed")
			state, err := components.GateAt(ctx, f.ClientSet, gate, components.KubeletMetrics(string(node)))
			framework.ExpectNoError(err)
			gomega.Expect(state).To(gomega.Equal(featuregates.GateOn))
			if keepContainers(minors[stock], minors[patched]) {
				l.expectSame(ctx, before)
			}
			// What a stock kubelet has started goes on.
			l.expectWell(ctx, featuregates.Patched, featuregates.Stock)
		})

		f.It("containerd is restarted while it creates containers", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			l := newLoad(ctx, f, worker(ctx, f))
			before := l.goingOn(ctx)
			for range restarts {
				l.atCreation(ctx, 1, "systemctl restart containerd")
				l.collect(ctx)
			}
			l.expectSame(ctx, before)
			l.expectWell(ctx, featuregates.Patched)
		})

		f.It("the API server is down, and containers take what their files have meanwhile", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			l := newLoad(ctx, f, worker(ctx, f))
			l.collect(ctx)
			server := controlPlane(ctx, f)
			takeDown(ctx, f, server)
			down := time.Now()
			l.end(ctx, expected.Sidecar)
			l.awaitRuns(ctx, down, expected.Sidecar)
			gomega.Consistently(ctx, func(ctx context.Context) error { return reach(ctx, f) }).
				WithTimeout(max(time.Second, outage-time.Since(down))).WithPolling(time.Second).ShouldNot(gomega.Succeed())
			meanwhile := l.runsSince(down, expected.Sidecar)
			for _, run := range meanwhile {
				generation, _ := run.Generation()
				gomega.Expect(generation).To(gomega.BeNumerically(">", expected.GenerationAt(l.log.Written, run.Pod, down)), "%+v", run)
			}
			bringUp(ctx, f, server)
			l.expectInLogs(ctx, meanwhile)
			l.expectWell(ctx, featuregates.Patched)
		})

		f.It("the node is rebooted", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			l := newLoad(ctx, f, worker(ctx, f))
			l.collect(ctx)
			before, err := components.KubeletStart(ctx, f.ClientSet, string(l.node))
			framework.ExpectNoError(err)
			rebooted := time.Now()
			l.node.Reboot(ctx)
			gomega.Eventually(ctx, func(ctx context.Context) error {
				now, err := components.KubeletStart(ctx, f.ClientSet, string(l.node))
				if err == nil && now == before {
					err = errors.New("the API server still has the kubelet of before")
				}
				return err
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
			// Not the init container: kubelets have been seen to take its run before the reboot
			// for done. What it printed is checked wherever it does run.
			consumers := expected.EnvOfContainers()
			delete(consumers, expected.Init)
			l.awaitRuns(ctx, rebooted, slices.Collect(maps.Keys(consumers))...)
			l.expectWell(ctx, featuregates.Patched)
		})

		f.It("etcd is restarted", func(ctx context.Context) {
			components.RequireGate(ctx, gate)
			l := newLoad(ctx, f, worker(ctx, f))
			before := l.goingOn(ctx)
			controlPlane(ctx, f).Restart(ctx, "etcd")
			l.expectSame(ctx, before)
			l.expectWell(ctx, featuregates.Patched)
		})
	})
