package envfiles

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describeIf(components.RequireGateOff, "with the gate off in the API server,", func(f *framework.Framework) {
	f.It("fileKeyRef is dropped from a new pod", func(ctx context.Context) {
		source := &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
		created := pods.Create(ctx, f, unscheduled(newPod("dropped", nil, pods.Dumps(consumer, alsoFrom(source)))))

		gomega.Expect(created.Spec.Containers[0].Env[0].ValueFrom).To(gomega.Equal(source))
	})

	f.It("a variable whose only source was fileKeyRef is refused, not silently left empty", func(ctx context.Context) {
		_, err := pods.TryCreate(ctx, f, unscheduled(newPod("refused", nil, pods.Dumps(consumer, from("A", "config.env", "A")))))

		expectInvalid(err, firstVariable)
	})

	forEachWorkload("fileKeyRef is dropped from a new template", func(ctx context.Context, w workload) {
		source := &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
		client := w.Client(f.DynamicClient, f.Namespace.Name)
		created, err := client.Create(ctx, w.Of("dropped", unscheduled(newPod("", nil, pods.Dumps(consumer, alsoFrom(source))))), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(w.TemplateOf(created).Spec.Containers[0].Env[0].ValueFrom).To(gomega.Equal(source))
	})

	forEachWorkload("fileKeyRef is dropped from an update that adds it to a template", func(ctx context.Context, w workload) {
		source := &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}
		client := w.Client(f.DynamicClient, f.Namespace.Name)
		without := pods.Dumps(consumer, v1.EnvVar{Name: "A", ValueFrom: source})
		_, err := client.Create(ctx, w.Of("dropped", unscheduled(newPod("", nil, without))), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		var object *unstructured.Unstructured
		// A controller may write to the object meanwhile.
		framework.ExpectNoError(retry.RetryOnConflict(pods.Conflicts, func() error {
			if object, err = client.Get(ctx, "dropped", metav1.GetOptions{}); err != nil {
				return err
			}
			template := w.TemplateOf(object)
			template.Spec.Containers[0].Env = []v1.EnvVar{alsoFrom(source)}
			w.SetTemplate(object, template)
			object, err = client.Update(ctx, object, metav1.UpdateOptions{})
			return err
		}))
		gomega.Expect(w.TemplateOf(object).Spec.Containers[0].Env[0].ValueFrom).To(gomega.Equal(source))
	})

	forEachWorkload("a variable whose only source was fileKeyRef is refused, by its own path, in the template", func(ctx context.Context, w workload) {
		pod := unscheduled(newPod("", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		_, err := w.Client(f.DynamicClient, f.Namespace.Name).Create(ctx, w.Of("refused", pod), metav1.CreateOptions{})

		if w.Name == "StatefulSet" && !upstreamValidatesStatefulSets(f) {
			framework.ExpectNoError(err) // as every Kubernetes there
			return
		}
		expectInvalid(err, w.At(firstVariable))
	})
})

// upstreamValidatesStatefulSets reports whether the release validates their templates.
func upstreamValidatesStatefulSets(f *framework.Framework) bool {
	ginkgo.GinkgoHelper()
	server, err := f.ClientSet.Discovery().ServerVersion()
	framework.ExpectNoError(err)
	return version.MustParseGeneric(server.GitVersion).AtLeast(version.MajorMinor(1, 34))
}

// alsoFrom is a variable with two sources, which is an error, unless fileKeyRef is
// dropped before validation.
func alsoFrom(source *v1.EnvVarSource) v1.EnvVar {
	variable := from("A", "config.env", "A")
	variable.ValueFrom.FieldRef = source.FieldRef
	return variable
}
