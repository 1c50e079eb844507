package envfiles

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("containers of every kind", func(f *framework.Framework) {
	f.It("take variables from an env file: init, sidecar, regular and ephemeral", func(ctx context.Context) {
		variable := from("A", "config.env", "A")
		aside := pods.Dumps("sidecar", variable)
		aside.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		aside.Args = []string{"serve", ":8081"}
		main := pods.Dumps("regular", variable)
		main.Args = []string{"serve"}
		pod := newPod("every-kind", append(writes("config.env", "A=1\n"), pods.Dumps("init", variable), aside), main)
		pods.Create(ctx, f, pod)
		pods.Await(ctx, f, pod.Name, "its regular container to run", func(pod *v1.Pod) bool {
			return pods.Status(pod, "regular").State.Running != nil
		})

		addEphemeral(ctx, f, pod.Name, ephemeral("ephemeral", variable))
		pods.Await(ctx, f, pod.Name, "its ephemeral container to end", func(pod *v1.Pod) bool {
			return pods.Status(pod, "ephemeral").State.Terminated != nil
		})
		for _, container := range []string{"init", "sidecar", "regular", "ephemeral"} {
			gomega.Expect(pods.Env(ctx, f, pod.Name, container)).To(gomega.HaveKeyWithValue("A", "1"), "the %s container", container)
		}
	})

	f.It("wait where the file is missing: a sidecar, and so what comes after it", func(ctx context.Context) {
		aside := pods.Dumps("consuming-sidecar", from("A", "config.env", "A"))
		aside.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		aside.Args = []string{"serve"}
		pod := newPod("sidecar-waits", []v1.Container{sidecar(""), aside}, pods.Dumps("main"))
		pods.Create(ctx, f, pod)
		event := pods.AwaitConfigError(ctx, f, pod.Name, aside.Name)
		gomega.Expect(event.InvolvedObject.FieldPath).To(gomega.Equal("spec.initContainers{" + aside.Name + "}"))

		replace(ctx, f, pod.Name, "config.env", "A=1")
		pods.Await(ctx, f, pod.Name, "its main container to end", func(pod *v1.Pod) bool {
			return pods.Status(pod, "main").State.Terminated != nil
		})
		gomega.Expect(pods.Env(ctx, f, pod.Name, aside.Name)).To(gomega.HaveKeyWithValue("A", "1"))
	})
})

// ephemeral is a container for debugging that prints its environment.
func ephemeral(name string, env ...v1.EnvVar) v1.EphemeralContainer {
	return v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon(pods.Dumps(name, env...))}
}

// addEphemeral adds container to the pod.
func addEphemeral(ctx context.Context, f *framework.Framework, pod string, container v1.EphemeralContainer) {
	framework.ExpectNoError(tryAddEphemeral(ctx, f.ClientSet, f.Namespace.Name, pod, container))
}

// tryAddEphemeral is addEphemeral for a container that the API server may refuse.
func tryAddEphemeral(ctx context.Context, clients kubernetes.Interface, namespace, pod string, container v1.EphemeralContainer) error {
	client := clients.CoreV1().Pods(namespace)
	now, err := client.Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now.Spec.EphemeralContainers = append(now.Spec.EphemeralContainers, container)
	_, err = client.UpdateEphemeralContainers(ctx, pod, now, metav1.UpdateOptions{})
	return err
}
