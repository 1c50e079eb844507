package podpreset

import (
	"context"
	"slices"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// workloads are the kinds of which a controller makes pods.
var workloads = []struct {
	group, kind, resource string
	template              []string // where in the object its template is
	once                  bool     // its pods run to their end
	selects               bool     // it needs a selector
	schedule              string
}{
	{group: "", kind: "ReplicationController", resource: "replicationcontrollers", template: []string{"spec", "template"}},
	{group: "apps", kind: "DaemonSet", resource: "daemonsets", template: []string{"spec", "template"}, selects: true},
	{group: "apps", kind: "Deployment", resource: "deployments", template: []string{"spec", "template"}, selects: true},
	{group: "apps", kind: "ReplicaSet", resource: "replicasets", template: []string{"spec", "template"}, selects: true},
	{group: "apps", kind: "StatefulSet", resource: "statefulsets", template: []string{"spec", "template"}, selects: true},
	{group: "batch", kind: "CronJob", resource: "cronjobs", template: []string{"spec", "jobTemplate", "spec", "template"}, once: true, schedule: "* * * * *"},
	{group: "batch", kind: "Job", resource: "jobs", template: []string{"spec", "template"}, once: true},
}

var _ = describe("workloads", func(f *framework.Framework) {
	for _, w := range workloads {
		f.It("of a "+w.kind+" the pods get a preset, and the template stays as it is", func(ctx context.Context) {
			create(ctx, f, allowDatabase)
			pod := website(nil)
			pods.Quick(&pod.Spec)
			if !w.once {
				pod.Spec.RestartPolicy, pod.Spec.Containers[0].Args = v1.RestartPolicyAlways, []string{"serve"}
			}
			template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec})
			framework.ExpectNoError(err)
			object := &unstructured.Unstructured{}
			gv := schema.GroupVersion{Group: w.group, Version: "v1"}
			object.SetGroupVersionKind(gv.WithKind(w.kind))
			object.SetName("frontend")
			framework.ExpectNoError(unstructured.SetNestedMap(object.Object, template, w.template...))
			if w.selects {
				framework.ExpectNoError(unstructured.SetNestedStringMap(object.Object, pod.Labels, "spec", "selector", "matchLabels"))
			}
			if w.schedule != "" {
				framework.ExpectNoError(unstructured.SetNestedField(object.Object, w.schedule, "spec", "schedule"))
			}

			made, err := f.DynamicClient.Resource(gv.WithResource(w.resource)).Namespace(f.Namespace.Name).Create(ctx, object, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			stored, _, err := unstructured.NestedMap(made.Object, w.template...)
			framework.ExpectNoError(err)
			var kept v1.PodTemplateSpec
			framework.ExpectNoError(runtime.DefaultUnstructuredConverter.FromUnstructured(stored, &kept))
			gomega.Expect(kept.Spec.Containers[0].Env).To(gomega.BeEmpty())
			gomega.Expect(kept.Spec.Volumes).To(gomega.BeEmpty())
			gomega.Expect(kept.Annotations).To(gomega.BeEmpty())

			gomega.Eventually(ctx, func(ctx context.Context) ([]v1.Pod, error) {
				list, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "role=frontend"})
				return slices.DeleteFunc(list.Items, func(pod v1.Pod) bool {
					return pod.Status.Phase != v1.PodRunning && pod.Status.Phase != v1.PodSucceeded
				}), err
			}).WithTimeout(f.Timeouts.PodStart).ShouldNot(gomega.BeEmpty(), "a pod of the %s to run", w.kind)
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
