package podpreset

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

var _ = describe("kubectl debug", func(f *framework.Framework) {
	f.It("an ephemeral container gets nothing", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := website(func(pod *v1.Pod) { pod.Spec.Containers[0].Args = []string{"serve"} })
		pod = pods.Create(ctx, f, pod)
		pods.Await(ctx, f, pod.Name, "it to run", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodRunning })
		suite.RunKubectl(ctx, "debug", pod.Name, "--namespace", f.Namespace.Name, "--container", "debugger", "--profile", "baseline",
			"--image", images.Envdump, "--image-pull-policy", "Never")

		pod = pods.Await(ctx, f, pod.Name, "the ephemeral container to end", func(pod *v1.Pod) bool {
			return pods.Status(pod, "debugger").State.Terminated != nil
		})
		gomega.Expect(pods.Env(ctx, f, pod.Name, "debugger")).NotTo(gomega.HaveKey("DB_PORT"))
		gomega.Expect(pod.Spec.EphemeralContainers).To(gomega.HaveLen(1))
		gomega.Expect(pod.Spec.EphemeralContainers[0].Env).To(gomega.BeEmpty())
		gomega.Expect(pod.Spec.EphemeralContainers[0].VolumeMounts).To(gomega.BeEmpty())
		gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
	})

	f.It("a copy of a pod that has a preset is not in conflict with it, and has it once", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := pods.Create(ctx, f, website(nil))
		// As kubectl debug --copy-to --keep-labels --keep-annotations makes it, from v1.31 on.
		copied := pods.Create(ctx, f, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "copy", Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec,
		})
		gomega.Expect(copied.Annotations).To(gomega.HaveKey(applied + "allow-database"))
		gomega.Expect(copied.Spec.Containers).To(gomega.HaveLen(1))
		gomega.Expect(copied.Spec.Containers[0].Env).To(gomega.HaveLen(1))
		gomega.Expect(pathsOf(copied.Spec.Containers[0])).To(gomega.Equal(map[string]string{"/cache": "cache-volume"}))

		// An event about the copy would be there before that of a pod that is created later.
		later := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Name, pod.Spec.Containers[0].Env = "later", []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
		}))
		expectConflict(ctx, f, later, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT.")
		gomega.Expect(conflicts(ctx, f, copied, "allow-database")).To(gomega.BeEmpty())
	})

	f.It("an annotation that says that a preset was applied is taken from a pod that is in conflict with it", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Annotations = map[string]string{applied + "allow-database": "1"}
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
		}))
		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "allow-database"))
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT.")
	})
})
