package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2epod "k8s.io/kubernetes/test/e2e/framework/pod"

	"podenv.dev/test/images"
)

// Env returns the environment that a container of the image Envdump printed. It waits for the
// log, which may appear after the status says that the container has ended.
func Env(ctx context.Context, f *framework.Framework, pod, container string) map[string]string {
	ginkgo.GinkgoHelper()
	var env map[string]string
	framework.ExpectNoError(framework.Gomega().Eventually(ctx, func(ctx context.Context) (err error) {
		text, err := TryLog(ctx, f, pod, container)
		if err == nil {
			env, err = ParseEnv(text)
		}
		return err
	}).WithTimeout(f.Timeouts.PodStartShort).Should(gomega.Succeed()), "container %s of pod %s", container, pod)
	return env
}

// Log returns what the container printed in its current or last run.
func Log(ctx context.Context, f *framework.Framework, pod, container string) string {
	ginkgo.GinkgoHelper()
	text, err := TryLog(ctx, f, pod, container)
	framework.ExpectNoError(err, "read the log of container %s of pod %s", container, pod)
	return text
}

// TryLog is Log for a container that may not have run.
func TryLog(ctx context.Context, f *framework.Framework, pod, container string) (string, error) {
	text, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).
		GetLogs(pod, &v1.PodLogOptions{Container: container}).DoRaw(ctx)
	return string(text), err
}

// ParseEnv parses the output of envdump.
func ParseEnv(text string) (map[string]string, error) {
	var document struct{ Env []string }
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return nil, fmt.Errorf("envdump printed %q: %w", text, err)
	}
	env := map[string]string{}
	for _, entry := range document.Env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			return nil, fmt.Errorf("the environment has an entry without an equals sign: %q", entry)
		}
		// A process may use either of two definitions; no container should get two.
		if _, duplicate := env[name]; duplicate {
			return nil, fmt.Errorf("the environment defines %s twice", name)
		}
		env[name] = value
	}
	return env, nil
}

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

// HowToLoad is the end of an error about a node that lacks a test image.
const HowToLoad = "podenv loads them into its own clusters; for another one `podenv image` makes them, as _output/cache/testimages/*.tar: " +
	"`kind load image-archive TAR --name CLUSTER` loads them into a kind cluster, `ctr -n k8s.io images import TAR` into any node with containerd"

// Once is a pod that runs containers once.
func Once(name string, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: containers},
	}
}

// Dumps is a container without a shell that prints its environment.
func Dumps(name string, env ...v1.EnvVar) v1.Container {
	return v1.Container{Name: name, Image: images.Envdump, ImagePullPolicy: v1.PullNever, Env: env}
}

// EmptyDir is a volume that lives as long as the pod.
func EmptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}
