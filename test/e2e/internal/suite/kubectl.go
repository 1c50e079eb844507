package suite

import (
	"context"
	"os/exec"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/kubernetes/test/e2e/framework"
)

// RunKubectl runs the kubectl of the series under test on the cluster and returns its output.
// It skips the running spec if there is no kubectl.
func RunKubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := TryKubectl(ctx, args...)
	framework.ExpectNoError(err, "kubectl %q: %s", args, out)
	return out
}

// TryKubectl is RunKubectl for a command that may fail.
func TryKubectl(ctx context.Context, args ...string) (string, error) {
	ginkgo.GinkgoHelper()
	args = append([]string{"--kubeconfig", framework.TestContext.KubeConfig}, args...)
	if framework.TestContext.KubeContext != "" {
		args = append([]string{"--context", framework.TestContext.KubeContext}, args...)
	}
	out, err := exec.CommandContext(ctx, Kubectl(), args...).CombinedOutput()
	return string(out), err
}
