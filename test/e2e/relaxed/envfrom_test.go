package relaxed

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// source is the name of a spec's ConfigMap, and of its Secret.
const source = "source"

// invalidNames is the reason of the kubelet's event about keys that it leaves out.
const invalidNames = "InvalidEnvironmentVariableNames"

// keys are keys that a ConfigMap and a Secret may have. The strict rule refuses the
// first two as names of variables, and none is refused by the relaxed one.
var keys = []string{"1ST", "007", "C_IDENTIFIER", "a.b", "a-b", "-", "_", ".hidden"}

var _ = describe("through envFrom", func(f *framework.Framework) {
	for _, of := range []struct {
		name, row string
		reference func() v1.EnvFromSource
	}{{"a ConfigMap", "config map", fromConfigMap}, {"a Secret", "secret", fromSecret}} {
		f.It("every key of "+of.name+" becomes a variable, and no event speaks of invalid names", suite.Shows("KEP-4369", of.row), func(ctx context.Context) {
			want := map[string]string{}
			for _, key := range keys {
				want[key] = valueOf(key)
			}
			createKeys(ctx, f, want, want)
			container := dumps()
			container.EnvFrom = []v1.EnvFromSource{of.reference()}
			pod := pods.Once("keys", container)
			pods.RunToEnd(ctx, f, pod)

			gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(want))
			// The kubelet sends its events in the order in which it raises them.
			gomega.Expect(eventsUntilStart(ctx, f, pod.Name)).NotTo(gomega.ContainElement(gomega.HaveField("Reason", invalidNames)))
		})

		f.It("a prefix with any printable character stands before the keys of "+of.name, func(ctx context.Context) {
			values := map[string]string{"1ST": "first", "a.b": "second"}
			createKeys(ctx, f, values, values)
			container := dumps()
			want := map[string]string{}
			for _, prefix := range append([]string{"Logging:", "two  words ", "$(A)", `"`}, printable...) {
				from := of.reference()
				from.Prefix = prefix
				container.EnvFrom = append(container.EnvFrom, from)
				for key, value := range values {
					want[prefix+key] = value
				}
			}
			pod := pods.Once("prefixes", container)
			pods.RunToEnd(ctx, f, pod)

			gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(want))
		})
	}
})

var _ = describe("through envFrom, in an ephemeral container,", func(f *framework.Framework) {
	f.It("every key of a ConfigMap becomes a variable, with a prefix of any printable characters", func(ctx context.Context) {
		createKeys(ctx, f, map[string]string{"1ST": "first", "a.b": "second"}, nil)
		prefixed := fromConfigMap()
		prefixed.Prefix = "Logging: "
		framework.ExpectNoError(debugFrom(ctx, f, fromConfigMap(), prefixed))
		pods.Await(ctx, f, "debugged", "the ephemeral container to end", func(pod *v1.Pod) bool {
			return pods.Status(pod, "debug").State.Terminated != nil
		})

		env := pods.Env(ctx, f, "debugged", "debug")
		for name, value := range map[string]string{"1ST": "first", "a.b": "second", "Logging: 1ST": "first", "Logging: a.b": "second"} {
			gomega.Expect(env).To(gomega.HaveKeyWithValue(name, value))
		}
	})
})

// createKeys creates a ConfigMap and a Secret, both with the name source.
func createKeys(ctx context.Context, f *framework.Framework, configMap, secret map[string]string) {
	ginkgo.GinkgoHelper()
	meta := metav1.ObjectMeta{Name: source}
	_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{ObjectMeta: meta, Data: configMap}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	_, err = f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, &v1.Secret{ObjectMeta: meta, StringData: secret}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

func fromConfigMap() v1.EnvFromSource {
	return v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: source}}}
}

func fromSecret() v1.EnvFromSource {
	return v1.EnvFromSource{SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: source}}}
}

// eventsUntilStart waits for the event that the pod's consumer was started, and returns all
// events that are on the pod then.
func eventsUntilStart(ctx context.Context, f *framework.Framework, pod string) (events []v1.Event) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) []v1.Event {
		events = eventsOf(ctx, f, pod)
		return events
	}).WithTimeout(f.Timeouts.PodStart).Should(gomega.ContainElement(gomega.And(
		gomega.HaveField("Reason", "Started"), gomega.HaveField("InvolvedObject.FieldPath", "spec.containers{"+consumer+"}"))))
	return events
}

// eventsOf are the events on the object called name.
func eventsOf(ctx context.Context, f *framework.Framework, name string) []v1.Event {
	ginkgo.GinkgoHelper()
	events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String(),
	})
	framework.ExpectNoError(err)
	return events.Items
}
