package relaxed

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

// gate is the feature gate under test.
const gate = "RelaxedEnvironmentVariableValidation"

var specs = suite.For("Relaxed names", gate, "relaxed")

// consumer is the container whose environment a spec is about.
const consumer = "app"

// story is the name of the KEP's user story, which only the relaxed rule accepts.
const story = "Logging:LogLevel:Default"

// describe declares specs that need the gate on; they are skipped, and say so, on a
// cluster where it is off.
func describe(theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return describeIf(components.RequireGate, theme, body, labels...)
}

// describeIf declares specs that run where precondition does not skip them.
func describeIf(precondition func(context.Context, string), theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return specs.Describe(precondition, theme, body, labels...)
}

// dumps is a container without a shell that prints its environment.
func dumps(env ...v1.EnvVar) v1.Container {
	return pods.Dumps(consumer, env...)
}

// debug creates a pod called debugged and adds an ephemeral container called debug, with
// env, to it.
func debug(ctx context.Context, f *framework.Framework, env ...v1.EnvVar) error {
	ginkgo.GinkgoHelper()
	return debugWith(ctx, f, v1.EphemeralContainerCommon{Env: env})
}

// debugFrom is debug with envFrom.
func debugFrom(ctx context.Context, f *framework.Framework, from ...v1.EnvFromSource) error {
	ginkgo.GinkgoHelper()
	return debugWith(ctx, f, v1.EphemeralContainerCommon{EnvFrom: from})
}

func debugWith(ctx context.Context, f *framework.Framework, container v1.EphemeralContainerCommon) error {
	ginkgo.GinkgoHelper()
	container.Name, container.Image, container.ImagePullPolicy = "debug", images.Envdump, v1.PullNever
	serving := dumps()
	serving.Args = []string{"serve"}
	if olderThan(f, 33) {
		// Such an API server lets a node read what the other containers of a pod refer to, but
		// not what an ephemeral container brings.
		serving.EnvFrom = container.EnvFrom
	}
	pod := pods.Create(ctx, f, pods.Once("debugged", serving))
	pod.ResourceVersion = "" // whatever the scheduler and the kubelet write meanwhile
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: container}}
	_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).UpdateEphemeralContainers(ctx, pod.Name, pod, metav1.UpdateOptions{})
	return err
}

// literal is a variable whose value stands for its name and for no other, in characters
// that nothing on the way expands or quotes.
func literal(name string) v1.EnvVar {
	return v1.EnvVar{Name: name, Value: valueOf(name)}
}

func valueOf(name string) string { return hex.EncodeToString([]byte(name)) }

// printable are the characters that a relaxed name may have.
var printable = func() (all []string) {
	for c := ' '; c <= '~'; c++ {
		if c != '=' {
			all = append(all, string(c))
		}
	}
	return all
}()

// everywhere are names that have each printable character alone, first, in the middle
// and last.
var everywhere = func() []string {
	names := map[string]bool{}
	for _, c := range printable {
		for _, name := range []string{c, c + "A", "A" + c + "A", "A" + c} {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}()

// seen is the environment of the pod's consumer without what every container has.
func seen(ctx context.Context, f *framework.Framework, pod string) map[string]string {
	ginkgo.GinkgoHelper()
	env := pods.Env(ctx, f, pod, consumer)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return name == "PATH" || name == "HOME" || name == "HOSTNAME" || strings.HasPrefix(name, "KUBERNETES_")
	})
	return env
}
