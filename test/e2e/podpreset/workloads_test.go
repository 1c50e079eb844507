package podpreset

import (
	"context"
	"github.com/onsi/ginkgo/v2"
	"slices"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/e2e/internal/workloads"
)

var _ = describe("workloads", func(f *framework.Framework) {
	for _, w := range workloads.All {
		if w.Name == "PodTemplate" {
			continue // no controller makes pods of it
		}
		var labels ginkgo.Labels
		if w.Name == "ReplicaSet" {
			labels = suite.Shows("Pod Preset", "example 3")
		}
		f.It("of a "+w.Name+" the pods get a preset, and the template stays as it is", labels, func(ctx context.Context) {
			create(ctx, f, allowDatabase)
			pod := website(nil)
			if !w.Once {
				pod.Spec.Containers[0].Args = []string{"serve"}
			}
			object := w.Of("frontend", pod)
			if w.Name == "CronJob" {
				w.SetSchedule(object, "* * * * *")
			}

			made, err := w.Client(f.DynamicClient, f.Namespace.Name).Create(ctx, object, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			kept := w.TemplateOf(made)
			gomega.Expect(kept.Spec.Containers[0].Env).To(gomega.BeEmpty())
			gomega.Expect(kept.Spec.Volumes).To(gomega.BeEmpty())
			gomega.Expect(kept.Annotations).To(gomega.BeEmpty())

			gomega.Eventually(ctx, func(ctx context.Context) ([]v1.Pod, error) {
				list, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "role=frontend"})
				return slices.DeleteFunc(list.Items, func(pod v1.Pod) bool {
					return pod.Status.Phase != v1.PodRunning && pod.Status.Phase != v1.PodSucceeded
				}), err
			}).WithTimeout(f.Timeouts.PodStart).ShouldNot(gomega.BeEmpty(), "a pod of the %s to run", w.Name)
			list, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "role=frontend"})
			framework.ExpectNoError(err)
			for _, pod := range list.Items {
				gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.HaveKeyWithValue("DB_PORT", "6379"), pod.Name)
				gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.HaveKeyWithValue("/cache", "cache-volume"), pod.Name)
				gomega.Expect(pod.Annotations).To(gomega.HaveKey(applied+"allow-database"), pod.Name)
			}
		})
	}
})
