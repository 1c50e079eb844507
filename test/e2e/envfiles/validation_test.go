package envfiles

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// Where the errors are, below a container's env.
const (
	firstVariable = "spec.containers[0].env[0].valueFrom"
	fileKeyRef    = firstVariable + ".fileKeyRef"
)

// The rules themselves are proven by the corpus.
var _ = describe("the API server", func(f *framework.Framework) {
	forEachWorkload("refuses, by its own path, a wrong volume in the template", func(ctx context.Context, w workload) {
		pod := unscheduled(newPod("", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		pod.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef.VolumeName = "other"
		_, err := w.Client(f.DynamicClient, f.Namespace.Name).Create(ctx, w.Of("refused", pod), metav1.CreateOptions{})

		expectInvalid(err, w.At(fileKeyRef+".volumeName"))
	})

	forEachWorkload("keeps fileKeyRef in the template", func(ctx context.Context, w workload) {
		variable := optional(from("A", "config.env", "A"))
		client := w.Client(f.DynamicClient, f.Namespace.Name)
		created, err := client.Create(ctx, w.Of("kept", unscheduled(newPod("", nil, pods.Dumps(consumer, variable)))), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(w.TemplateOf(created).Spec.Containers[0].Env).To(gomega.Equal([]v1.EnvVar{variable}))
	})
})

// expectInvalid checks that err is the API server's answer 422 with errors on field,
// and on no other.
func expectInvalid(err error, field string) {
	ginkgo.GinkgoHelper()
	var fields []string
	for _, cause := range causesOf(err) {
		fields = append(fields, cause.Field)
	}
	gomega.Expect(fields).NotTo(gomega.BeEmpty())
	gomega.Expect(fields).To(gomega.HaveEach(field), "fields of %v", err)
}

// causesOf returns the errors on fields in err, the API server's answer 422.
func causesOf(err error) []metav1.StatusCause {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).To(gomega.HaveOccurred())
	status, ok := err.(apierrors.APIStatus)
	gomega.Expect(ok).To(gomega.BeTrueBecause("the API server answers with a status, got %v", err))
	gomega.Expect(status.Status().Code).To(gomega.BeEquivalentTo(http.StatusUnprocessableEntity))
	gomega.Expect(status.Status().Details).NotTo(gomega.BeNil())
	return status.Status().Details.Causes
}

// deploymentOf is a Deployment of one replica of pod.
func deploymentOf(name string, pod *v1.Pod) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name}
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	pods.Quick(&pod.Spec)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
}
