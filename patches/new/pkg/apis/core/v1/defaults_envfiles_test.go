package v1_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
)

// Upstream's v1.34 has this default. Were it not here, the templates that this
// branch stores, and the revisions that controllers keep of them, would all
// change on the move there, and every such workload would roll.
func TestFileKeyRefIsNotOptionalByDefault(t *testing.T) {
	env := func(optional *bool) []v1.EnvVar {
		return []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: "config", Path: "f", Key: "A", Optional: optional}}}}
	}
	spec := func(optional *bool) v1.PodSpec {
		return v1.PodSpec{InitContainers: []v1.Container{{Env: env(optional)}}, Containers: []v1.Container{{Env: env(optional)}}}
	}
	yes := true
	for _, optional := range []*bool{nil, &yes} {
		pod := &v1.Pod{Spec: spec(optional)}
		daemonSet := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: v1.PodTemplateSpec{Spec: spec(optional)}}}
		statefulSet := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: v1.PodTemplateSpec{Spec: spec(optional)}}}
		for _, tc := range []struct {
			object runtime.Object
			spec   *v1.PodSpec
		}{{pod, &pod.Spec}, {daemonSet, &daemonSet.Spec.Template.Spec}, {statefulSet, &statefulSet.Spec.Template.Spec}} {
			legacyscheme.Scheme.Default(tc.object)
			for _, c := range append(tc.spec.InitContainers, tc.spec.Containers...) {
				got := c.Env[0].ValueFrom.FileKeyRef.Optional
				if got == nil || *got != (optional != nil) {
					t.Errorf("%T: want %v, got %v", tc.object, optional != nil, got)
				}
			}
		}
	}
}
