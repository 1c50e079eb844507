// Package workloads has the kinds of objects with a pod template.
package workloads

import (
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

// Kind is a kind of object with a pod template.
type Kind struct {
	Name     string
	Resource schema.GroupVersionResource
	Once     bool     // its pods run to their end
	Template []string // the path of its pod template

	selects bool // the object needs a selector
}

// All are all kinds of Kubernetes itself.
var All = []Kind{
	{"Deployment", v1Of("apps", "deployments"), false, inSpec, true},
	{"ReplicaSet", v1Of("apps", "replicasets"), false, inSpec, true},
	{"StatefulSet", v1Of("apps", "statefulsets"), false, inSpec, true},
	{"DaemonSet", v1Of("apps", "daemonsets"), false, inSpec, true},
	{"Job", v1Of("batch", "jobs"), true, inSpec, false},
	{"CronJob", v1Of("batch", "cronjobs"), true, []string{"spec", "jobTemplate", "spec", "template"}, false},
	{"ReplicationController", v1Of("", "replicationcontrollers"), false, inSpec, false},
	{"PodTemplate", v1Of("", "podtemplates"), false, []string{"template"}, false},
}

var inSpec = []string{"spec", "template"}

func v1Of(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// Client returns a client for objects of the kind.
func (k Kind) Client(client dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return client.Resource(k.Resource).Namespace(namespace)
}

// Of returns an object with the spec and labels of pod as its template.
func (k Kind) Of(name string, pod *v1.Pod) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	labels := pod.Labels
	if labels == nil {
		labels = map[string]string{"app.kubernetes.io/name": name}
	}
	template := &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *pod.Spec.DeepCopy()}
	template.Spec.RestartPolicy = v1.RestartPolicyAlways
	if k.Once {
		template.Spec.RestartPolicy = v1.RestartPolicyNever
	}
	pods.Quick(&template.Spec)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.Resource.GroupVersion().WithKind(k.Name))
	object.SetName(name)
	k.SetTemplate(object, template)
	if k.selects {
		framework.ExpectNoError(unstructured.SetNestedStringMap(object.Object, labels, "spec", "selector", "matchLabels"))
	}
	if k.Name == "CronJob" {
		k.SetSchedule(object, "@yearly")
	}
	return object
}

// SetSchedule sets when a CronJob runs.
func (k Kind) SetSchedule(object *unstructured.Unstructured, schedule string) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(unstructured.SetNestedField(object.Object, schedule, "spec", "schedule"))
}

// SetTemplate sets the template of an object.
func (k Kind) SetTemplate(object *unstructured.Unstructured, template *v1.PodTemplateSpec) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	framework.ExpectNoError(err)
	framework.ExpectNoError(unstructured.SetNestedMap(object.Object, content, k.Template...))
}

// TemplateOf returns the template of an object.
func (k Kind) TemplateOf(object *unstructured.Unstructured) *v1.PodTemplateSpec {
	ginkgo.GinkgoHelper()
	content, found, err := unstructured.NestedMap(object.Object, k.Template...)
	framework.ExpectNoError(err)
	if !found {
		framework.Failf("the %s has no template: %v", k.Name, object.Object)
	}
	template := &v1.PodTemplateSpec{}
	framework.ExpectNoError(runtime.DefaultUnstructuredConverter.FromUnstructured(content, template))
	return template
}

// At returns the path of a field of the template's pod, as the API server writes it.
func (k Kind) At(field string) string { return strings.Join(k.Template, ".") + "." + field }
