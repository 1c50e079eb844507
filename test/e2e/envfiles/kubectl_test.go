package envfiles

import (
	"context"
	"os/exec"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/entry"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("kubectl", func(f *framework.Framework) {
	f.It("describe pod shows the volume, the path, the key and optional", func(ctx context.Context) {
		pod := unscheduled(newPod("described", nil, dumps(consumer,
			from("VARIABLE", "sub/config.env", "KEY"), optional(from("MAYBE", "config.env", "OTHER")))))
		pods.Create(ctx, f, pod)

		text := kubectl(ctx, "describe", "pod", pod.Name, "--namespace", f.Namespace.Name)
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+VARIABLE:.*'KEY'.*'sub/config\.env'.*'config'.*Optional: false$`))
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+MAYBE:.*'OTHER'.*'config\.env'.*'config'.*Optional: true$`))
	})

	f.It("explain documents fileKeyRef and each of its fields", func(ctx context.Context) {
		text := kubectl(ctx, "explain", "pod.spec.containers.env.valueFrom.fileKeyRef")
		for _, field := range []string{"volumeName", "path", "key", "optional"} {
			gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+%s\s+<\w+>( -required-)?\n\s+\S+`, field), "documents %s", field)
		}
	})
})

// kubectl runs the kubectl of the series under test, and skips the spec where there
// is none.
func kubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	args = append([]string{"--kubeconfig", framework.TestContext.KubeConfig}, args...)
	if framework.TestContext.KubeContext != "" {
		args = append([]string{"--context", framework.TestContext.KubeContext}, args...)
	}
	out, err := exec.CommandContext(ctx, entry.Kubectl(), args...).CombinedOutput()
	framework.ExpectNoError(err, "kubectl %q: %s", args, out)
	return string(out)
}
