package expand

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is the text, or what else became of the source.
func (v value) outcome() string {
	switch {
	case v.unknown != "":
		return Unknown
	case v.fails != "":
		return Fails
	}
	return "=" + v.text
}

func TestFieldsThatAreKnownBeforeThePodRuns(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a/b": "c"}}
	spec := corev1.PodSpec{NodeName: "node", DeprecatedServiceAccount: "web"}
	for _, tc := range []struct{ path, pod, template string }{
		{"metadata.name", "=web", Unknown},
		{"metadata.namespace", "=shop", "=shop"},
		{"metadata.uid", Unknown, Unknown},
		{"metadata.labels['app']", "=web", "=web"},
		{"metadata.labels['other']", "=", Unknown},
		{"metadata.labels", "=app=\"web\"", Unknown},
		{"metadata.annotations['a/b']", "=c", "=c"},
		{"spec.nodeName", "=node", "=node"},
		{"spec.serviceAccountName", "=web", "=web"},
		{"spec.host", "=node", "=node"}, // spec.nodeName's old name
		{"status.podIP", Unknown, Unknown},
		{"status.podIPs", Unknown, Unknown},
		{"status.hostIP", Unknown, Unknown},
		{"spec.hostname", Fails, Fails},
		{"metadata.name['x']", Fails, Fails},
	} {
		t.Run(tc.path, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: meta, Spec: spec}
			for want, w := range map[*workload]string{
				{meta: meta, pod: pod}: tc.pod, {meta: meta, pod: pod, templated: true}: tc.template,
			} {
				if got := want.field(&corev1.ObjectFieldSelector{FieldPath: tc.path}).outcome(); got != w {
					t.Errorf("templated %v: want %s, got %s", want.templated, w, got)
				}
			}
		})
	}
}

func TestFieldsWithDefaults(t *testing.T) {
	w := &workload{pod: &corev1.Pod{}}
	for path, want := range map[string]string{"spec.nodeName": Unknown, "spec.serviceAccountName": "=default"} {
		if got := w.field(&corev1.ObjectFieldSelector{FieldPath: path}).outcome(); got != want {
			t.Errorf("%s: want %s, got %s", path, want, got)
		}
	}
}

func TestResourcesThatTheManifestSets(t *testing.T) {
	main := corev1.Container{Name: "main", Resources: corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{"cpu": apiresource.MustParse("1500m"), "memory": apiresource.MustParse("64Mi")},
		Requests: corev1.ResourceList{"cpu": apiresource.MustParse("1")},
	}}
	w := &workload{pod: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{main, {Name: "bare"}, {Name: "zero", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": apiresource.MustParse("0")}}}}}}}
	for _, tc := range []struct{ container, resource, divisor, want string }{
		{"", "limits.cpu", "0", "=2"},
		{"", "limits.cpu", "1m", "=1500"},
		{"", "limits.memory", "1Mi", "=64"},
		{"", "requests.cpu", "0", "=1"},
		{"", "requests.memory", "1Mi", "=64"}, // the limit is the default
		{"", "limits.ephemeral-storage", "0", Unknown},
		{"bare", "limits.cpu", "0", Unknown},
		{"bare", "requests.cpu", "0", Unknown},
		{"none", "limits.cpu", "0", Fails},
		{"zero", "limits.cpu", "0", Unknown}, // to the kubelet as if there were none
		{"zero", "requests.cpu", "0", "=0"},
	} {
		t.Run(tc.container+" "+tc.resource, func(t *testing.T) {
			ref := &corev1.ResourceFieldSelector{ContainerName: tc.container, Resource: tc.resource, Divisor: apiresource.MustParse(tc.divisor)}
			if got := w.resource(ref, &main).outcome(); got != tc.want {
				t.Errorf("want %s, got %s", tc.want, got)
			}
		})
	}
}
