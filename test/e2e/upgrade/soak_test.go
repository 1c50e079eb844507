package upgrade

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/nodes"
)

var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(), "while the kubelet goes up, down, up many times", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("soak")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("in place and on a drained node in turn, every environment is one that its kubelet gives", func(ctx context.Context) {
			node, minors := start(ctx, f)
			l := newLoad(ctx, f, node)
			for n := range nodes.Options.Walks {
				for i, build := range walk {
					ginkgo.By(fmt.Sprintf("walk %d of %d, step %d: to %s:%s", n+1, nodes.Options.Walks, i+1, build, minors[build]))
					l.collect(ctx)
					// The next walk takes each step in the other way.
					if (n+i)%2 == 0 {
						l.stepInPlace(ctx, build, minors[build])
					} else {
						l.stepDrained(ctx, build, minors[build])
					}
					l.expectWell(ctx, featuregates.Build(build))
				}
			}
		})
	})

// stepInPlace swaps the kubelet under what runs, which goes on, and has it replaced.
func (l *load) stepInPlace(ctx context.Context, build, minor string) {
	ginkgo.GinkgoHelper()
	before := l.goingOn(ctx)
	l.swap(ctx, build, minor)
	if keepContainers(minor, nodes.Options.Minor) {
		l.expectSame(ctx, before)
	}
	l.expectAllowed(ctx)
	l.expectKept(ctx)
	ginkgo.By("replacing the pods")
	framework.ExpectNoError(l.f.ClientSet.CoreV1().Pods(l.f.Namespace.Name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	l.renew(ctx, build)
}

// stepDrained swaps the kubelet as KEP-3721 has it, with nothing on the node.
func (l *load) stepDrained(ctx context.Context, build, minor string) {
	ginkgo.GinkgoHelper()
	l.node.Drain(ctx)
	l.swap(ctx, build, minor)
	l.node.Uncordon(ctx)
	l.renew(ctx, build)
}

// swap swaps the kubelet. What starts meanwhile, either may have started.
func (l *load) swap(ctx context.Context, build, minor string) {
	ginkgo.GinkgoHelper()
	l.startedBy(featuregates.Patched, featuregates.Stock)
	swap(ctx, l.f, l.node, build, minor)
	l.startedBy(featuregates.Build(build))
}

// renew goes on with the pods that have come in the place of others.
func (l *load) renew(ctx context.Context, build string) {
	ginkgo.GinkgoHelper()
	l.awaitStates(ctx, featuregates.Build(build))
	maps.DeleteFunc(l.stored, func(name string, _ any) bool { return strings.HasPrefix(name, "Pod/") })
	for name, spec := range l.specs(ctx) {
		if strings.HasPrefix(name, "Pod/") {
			l.stored[name] = spec
		}
	}
}
