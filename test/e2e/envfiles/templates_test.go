package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// workload is a kind of object that carries a pod template.
type workload struct {
	kind     schema.GroupVersionKind
	resource string
	restart  v1.RestartPolicy // of the template
	template []string         // where in the object the template is
	selects  bool             // the object needs a selector of its own
	more     map[string]any   // what else the object needs, by the path of its field
}

// workloads are all kinds that do. None of these objects makes a pod that runs: the
// templates are gated, see unscheduled.
var workloads = []workload{
	{kind: kind("apps", "Deployment"), resource: "deployments", restart: v1.RestartPolicyAlways, template: []string{"spec", "template"}, selects: true},
	{kind: kind("apps", "ReplicaSet"), resource: "replicasets", restart: v1.RestartPolicyAlways, template: []string{"spec", "template"}, selects: true},
	{kind: kind("apps", "StatefulSet"), resource: "statefulsets", restart: v1.RestartPolicyAlways, template: []string{"spec", "template"}, selects: true},
	{kind: kind("apps", "DaemonSet"), resource: "daemonsets", restart: v1.RestartPolicyAlways, template: []string{"spec", "template"}, selects: true},
	{kind: kind("batch", "Job"), resource: "jobs", restart: v1.RestartPolicyNever, template: []string{"spec", "template"}},
	{kind: kind("batch", "CronJob"), resource: "cronjobs", restart: v1.RestartPolicyNever, template: []string{"spec", "jobTemplate", "spec", "template"},
		more: map[string]any{"spec.schedule": "0 0 1 1 *"}},
	{kind: kind("", "ReplicationController"), resource: "replicationcontrollers", restart: v1.RestartPolicyAlways, template: []string{"spec", "template"}},
	{kind: kind("", "PodTemplate"), resource: "podtemplates", restart: v1.RestartPolicyAlways, template: []string{"template"}},
}

func kind(group, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// forEachWorkload declares a spec for every kind that carries a pod template.
func forEachWorkload(text string, spec func(context.Context, workload)) {
	ginkgo.GinkgoHelper()
	entries := []any{spec}
	for _, w := range workloads {
		entries = append(entries, ginkgo.Entry("of a "+w.kind.Kind, w))
	}
	ginkgo.DescribeTable(text, entries...)
}

// client is a client for objects of w's kind.
func (w workload) client(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return client.Resource(w.kind.GroupVersion().WithResource(w.resource)).Namespace(namespace)
}

// of is an object whose template is pod's spec.
func (w workload) of(name string, pod *v1.Pod) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	labels := map[string]string{"app.kubernetes.io/name": name}
	template := &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *pod.Spec.DeepCopy()}
	template.Spec.RestartPolicy = w.restart
	pods.Quick(&template.Spec)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(w.kind)
	object.SetName(name)
	w.setTemplate(object, template)
	if w.selects {
		framework.ExpectNoError(unstructured.SetNestedStringMap(object.Object, labels, "spec", "selector", "matchLabels"))
	}
	for field, value := range w.more {
		framework.ExpectNoError(unstructured.SetNestedField(object.Object, value, strings.Split(field, ".")...))
	}
	return object
}

func (w workload) setTemplate(object *unstructured.Unstructured, template *v1.PodTemplateSpec) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	framework.ExpectNoError(err)
	framework.ExpectNoError(unstructured.SetNestedMap(object.Object, content, w.template...))
}

func (w workload) templateOf(object *unstructured.Unstructured) *v1.PodTemplateSpec {
	ginkgo.GinkgoHelper()
	content, found, err := unstructured.NestedMap(object.Object, w.template...)
	framework.ExpectNoError(err)
	if !found {
		framework.Failf("the %s has no template: %v", w.kind.Kind, object.Object)
	}
	template := &v1.PodTemplateSpec{}
	framework.ExpectNoError(runtime.DefaultUnstructuredConverter.FromUnstructured(content, template))
	return template
}

// at is the path of a field of the template's pod, as the API server writes it.
func (w workload) at(field string) string {
	return strings.Join(w.template, ".") + "." + field
}
