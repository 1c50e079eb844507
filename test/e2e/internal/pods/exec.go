package pods

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"
)

// Exec runs a command in a container and returns its output. Pass secrets through stdin: the
// API server logs the arguments.
func Exec(ctx context.Context, f *framework.Framework, pod, container, stdin string, command ...string) string {
	ginkgo.GinkgoHelper()
	out, err := TryExec(ctx, f, pod, container, stdin, command...)
	framework.ExpectNoError(err)
	return out
}

// TryExec is Exec for a command that may fail. The error has the command's standard error.
func TryExec(ctx context.Context, f *framework.Framework, pod, container, stdin string, command ...string) (string, error) {
	options := e2epod.ExecOptions{
		Namespace: f.Namespace.Name, PodName: pod, ContainerName: container,
		Command: command, CaptureStdout: true, CaptureStderr: true, Quiet: true,
	}
	if stdin != "" {
		options.Stdin = strings.NewReader(stdin)
	}
	stdout, stderr, err := e2epod.Exec(f.TContext(ctx), options)
	if err != nil {
		return stdout, fmt.Errorf("in container %s of pod %s: %q: %w: %s", container, pod, command, err, stderr)
	}
	return stdout, nil
}
