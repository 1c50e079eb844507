package relaxed

import (
	"context"

	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a static pod", func(f *framework.Framework) {
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // to write a manifest onto the node

	f.It("may have variables with special names", func(ctx context.Context) {
		container := dumps(literal(story), literal("1ST"))
		container.Args = []string{"serve"}

		mirror := nodes.RunStaticPod(ctx, f, pods.Once("special-names", container))
		gomega.Expect(seen(ctx, f, mirror)).To(gomega.Equal(map[string]string{story: valueOf(story), "1ST": valueOf("1ST")}))
	})
})
