package envfiles

import (
	"context"
	"encoding/json"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

var _ = describe("the stored pod", func(f *framework.Framework) {
	ginkgo.DescribeTable("is read back as JSON and protobuf after a client wrote", func(ctx context.Context, contentType string) {
		variable := optional(from("A", "sub/config.env", "KEY"))
		pod := unscheduled(newPod("stored", nil, pods.Dumps(consumer, variable)))
		client := clientOf(f, contentType)
		_, err := client.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		for _, readAs := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			stored, err := clientOf(f, readAs).CoreV1().Pods(f.Namespace.Name).Get(ctx, pod.Name, metav1.GetOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(stored.Spec.Containers[0].Env).To(gomega.Equal([]v1.EnvVar{variable}), "read as %s", readAs)
		}
	},
		ginkgo.Entry("JSON", runtime.ContentTypeJSON),
		ginkgo.Entry("protobuf", runtime.ContentTypeProtobuf),
	)

	f.It("has the field names of the API, as every other client sends and expects them", func(ctx context.Context) {
		pods.Create(ctx, f, unscheduled(newPod("stored", nil, pods.Dumps(consumer, optional(from("A", "config.env", "KEY"))))))

		raw, err := clientOf(f, runtime.ContentTypeJSON).CoreV1().RESTClient().Get().
			Namespace(f.Namespace.Name).Resource("pods").Name("stored").DoRaw(ctx)
		framework.ExpectNoError(err)
		var pod struct {
			Spec struct {
				Containers []struct{ Env []json.RawMessage }
			}
		}
		framework.ExpectNoError(json.Unmarshal(raw, &pod))
		gomega.Expect(string(pod.Spec.Containers[0].Env[0])).To(gomega.MatchJSON(
			`{"name":"A","valueFrom":{"fileKeyRef":{"volumeName":"config","path":"config.env","key":"KEY","optional":true}}}`))
	})

	f.It("can be applied by a server-side applier, which owns the reference", func(ctx context.Context) {
		apply := applyv1.Pod("applied", f.Namespace.Name).WithSpec(applyv1.PodSpec().
			WithSchedulingGates(applyv1.PodSchedulingGate().WithName("podenv.dev/never")).
			WithVolumes(applyv1.Volume().WithName(volume).WithEmptyDir(applyv1.EmptyDirVolumeSource())).
			WithContainers(applyv1.Container().WithName(consumer).WithImage(images.Envdump).WithEnv(
				applyv1.EnvVar().WithName("A").WithValueFrom(applyv1.EnvVarSource().WithFileKeyRef(
					applyv1.FileKeySelector().WithVolumeName(volume).WithPath("config.env").WithKey("KEY"))))))
		var applied *v1.Pod
		for range 2 { // the second time onto what the first made
			var err error
			applied, err = f.ClientSet.CoreV1().Pods(f.Namespace.Name).Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "e2e"})
			framework.ExpectNoError(err)
		}

		want := from("A", "config.env", "KEY")
		want.ValueFrom.FileKeyRef.Optional = ptr.To(false) // the default
		gomega.Expect(applied.Spec.Containers[0].Env).To(gomega.Equal([]v1.EnvVar{want}))
		gomega.Expect(applied.ManagedFields).To(gomega.ContainElement(gomega.SatisfyAll(
			gomega.HaveField("Manager", "e2e"),
			gomega.HaveField("FieldsV1.Raw", gomega.ContainSubstring(`"f:fileKeyRef"`)))))
	})
})

// clientOf is a client that speaks contentType to the API server.
func clientOf(f *framework.Framework, contentType string) kubernetes.Interface {
	ginkgo.GinkgoHelper()
	config := f.ClientConfig()
	config.ContentType = contentType
	config.AcceptContentTypes = contentType
	client, err := kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	return client
}
