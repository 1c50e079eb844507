package envfiles

import (
	"context"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

// Where the errors are, below a container's env.
const (
	firstVariable = "spec.containers[0].env[0].valueFrom"
	fileKeyRef    = firstVariable + ".fileKeyRef"
)

// Rows 1 and 2 of KEP-3721's failure table.
var _ = describe("the API server", func(f *framework.Framework) {
	ginkgo.DescribeTable("refuses", func(ctx context.Context, source v1.VolumeSource, volumeName string) {
		pod := unscheduled(newPod("refused", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		pod.Spec.Volumes[0].VolumeSource = source
		pod.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef.VolumeName = volumeName
		_, err := pods.TryCreate(ctx, f, pod)

		expectInvalid(err, fileKeyRef+".volumeName")
	},
		ginkgo.Entry("row 1, a volume that the pod does not have", emptyDir(), "other"),
		ginkgo.Entry("row 1, no name of a volume", emptyDir(), ""),
		ginkgo.Entry("row 2, a volume that is a ConfigMap",
			v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "config"}}}, volume),
		ginkgo.Entry("row 2, a volume that is a Secret",
			v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: "config"}}, volume),
		ginkgo.Entry("row 2, a volume that is a projection",
			v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{
				ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "config"}},
			}}}}, volume),
		ginkgo.Entry("row 2, a volume that is a claim",
			v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "config"}}, volume),
		ginkgo.Entry("row 2, a volume that is a folder of the node",
			v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/etc"}}, volume),
	)

	ginkgo.DescribeTable("refuses", func(ctx context.Context, path, key, field string) {
		expectSelectorRefused(ctx, f, path, key, field)
	},
		ginkgo.Entry("an empty path", "", "A", ".path"),
		ginkgo.Entry("the path ..", "..", "A", ".path"),
		ginkgo.Entry("a path with .. in its middle", "sub/../config.env", "A", ".path"),
		ginkgo.Entry("a path that ends in ..", "sub/..", "A", ".path"),
		ginkgo.Entry("an empty key", "config.env", "", ".key"),
		ginkgo.Entry("a key with an equals sign", "config.env", "A=B", ".key"),
		ginkgo.Entry("a key that is not printable ASCII", "config.env", "Ä", ".key"),
	)

	f.It("refuses fileKeyRef beside another source", func(ctx context.Context) {
		pod := unscheduled(newPod("refused", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		pod.Spec.Containers[0].Env[0].ValueFrom.FieldRef = &v1.ObjectFieldSelector{FieldPath: "metadata.name"}
		_, err := pods.TryCreate(ctx, f, pod)

		expectInvalid(err, firstVariable)
	})

	f.It("refuses fileKeyRef beside a literal value", func(ctx context.Context) {
		pod := unscheduled(newPod("refused", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		pod.Spec.Containers[0].Env[0].Value = "literal"
		_, err := pods.TryCreate(ctx, f, pod)

		expectInvalid(err, firstVariable)
	})

	f.It("refuses a wrong volume in an init container, by its own path", func(ctx context.Context) {
		pod := unscheduled(newPod("refused",
			[]v1.Container{pods.Dumps("first-init"), pods.Dumps("second-init", v1.EnvVar{Name: "A", Value: "1"}, from("B", "config.env", "B"))},
			pods.Dumps("main")))
		pod.Spec.InitContainers[1].Env[1].ValueFrom.FileKeyRef.VolumeName = "other"
		_, err := pods.TryCreate(ctx, f, pod)

		expectInvalid(err, "spec.initContainers[1].env[1].valueFrom.fileKeyRef.volumeName")
	})

	forEachWorkload("refuses, by its own path, a wrong volume in the template", func(ctx context.Context, w workload) {
		pod := unscheduled(newPod("", nil, pods.Dumps(consumer, from("A", "config.env", "A"))))
		pod.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef.VolumeName = "other"
		_, err := w.client(f.DynamicClient, f.Namespace.Name).Create(ctx, w.of("refused", pod), metav1.CreateOptions{})

		expectInvalid(err, w.at(fileKeyRef+".volumeName"))
	})
})

var _ = describe("the API server", func(f *framework.Framework) {
	ginkgo.DescribeTable("accepts", func(ctx context.Context, path, key string) {
		created := pods.Create(ctx, f, unscheduled(newPod("accepted", nil, pods.Dumps(consumer, from("A", path, key)))))

		want := from("A", path, key)
		want.ValueFrom.FileKeyRef.Optional = ptr.To(false) // the default
		gomega.Expect(created.Spec.Containers[0].Env[0]).To(gomega.Equal(want))
	},
		ginkgo.Entry("a path below folders", "a/b/config.env", "A"),
		ginkgo.Entry("a path whose elements only begin with dots", "..data/...env", "A"),
		ginkgo.Entry("a key of 128 bytes", "config.env", strings.Repeat("A", 128)),
		ginkgo.Entry("a key that only the relaxed rule for names allows, whatever the gate of that rule says", "config.env", "1 key, relaxed!"),
	)

	forEachWorkload("keeps fileKeyRef in the template", func(ctx context.Context, w workload) {
		variable := optional(from("A", "config.env", "A"))
		client := w.client(f.DynamicClient, f.Namespace.Name)
		created, err := client.Create(ctx, w.of("kept", unscheduled(newPod("", nil, pods.Dumps(consumer, variable)))), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(w.templateOf(created).Spec.Containers[0].Env).To(gomega.Equal([]v1.EnvVar{variable}))
	})
})

var _ = describeIf(ownAPI, "the API server", func(f *framework.Framework) {
	ginkgo.DescribeTable("refuses", func(ctx context.Context, path, key, field string) {
		expectSelectorRefused(ctx, f, path, key, field)
	},
		ginkgo.Entry("an absolute path", "/config.env", "A", ".path"),
		ginkgo.Entry("a key of 129 bytes", "config.env", strings.Repeat("A", 129), ".key"),
	)
})

// expectSelectorRefused checks that the API server refuses a reference to key of the file at
// path, for the field of fileKeyRef.
func expectSelectorRefused(ctx context.Context, f *framework.Framework, path, key, field string) {
	ginkgo.GinkgoHelper()
	_, err := pods.TryCreate(ctx, f, unscheduled(newPod("refused", nil, pods.Dumps(consumer, from("A", path, key)))))

	expectInvalid(err, fileKeyRef+field)
}

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

func emptyDir() v1.VolumeSource {
	return v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}
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
