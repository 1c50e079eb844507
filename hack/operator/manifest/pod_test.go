package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// read returns the objects of a manifest.
func read(t *testing.T, text string) (objects []runtime.Object) {
	t.Helper()
	visit := func(object runtime.Object, _ string) error {
		objects = append(objects, object)
		return nil
	}
	if err := NewReader(scheme.Scheme, visit).Read("test.yaml", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestPodOfAStatefulSetHasItsClaims(t *testing.T) {
	set := read(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  ordinals: {start: 3}
  volumeClaimTemplates: [{metadata: {name: data}}, {metadata: {name: logs}}]
  template:
    spec:
      volumes: [{name: tmp, emptyDir: {}}, {name: data, emptyDir: {}}]
`)[0]
	_, template, _ := Template(set)
	_, pod, ok := Pod(set)
	if !ok {
		t.Fatal("no pod")
	}
	claim := func(name, of string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: of}}}
	}
	want := []corev1.Volume{claim("data", "data-db-3"), claim("logs", "logs-db-3"), template.Spec.Volumes[0]}
	if diff := cmp.Diff(want, pod.Spec.Volumes); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if len(template.Spec.Volumes) != 2 || template.Spec.Volumes[1].Name != "data" {
		t.Errorf("the template has changed: %v", template.Spec.Volumes)
	}
}

func TestPodOfAJobHasItsName(t *testing.T) {
	const template = `template: {metadata: {labels: {app: a}}}`
	app := map[string]string{"app": "a"}
	named := map[string]string{"app": "a", "job-name": "mig", "batch.kubernetes.io/job-name": "mig"}
	for _, tc := range []struct {
		name, kind, meta, spec string
		want                   map[string]string
	}{
		{"a Job", "Job", "name: mig", template, named},
		{"a Job without labels", "Job", "name: mig", "template: {}", map[string]string{"job-name": "mig", "batch.kubernetes.io/job-name": "mig"}},
		{"a Job whose name is generated", "Job", "generateName: mig-", template, app},
		{"a Job with a selector of its own", "Job", "name: mig", "manualSelector: true, " + template, app},
		{"a Job of a CronJob, whose name is not known", "CronJob", "name: mig", "schedule: '* * * * *', jobTemplate: {spec: {" + template + "}}", app},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := read(t, "{apiVersion: batch/v1, kind: "+tc.kind+", metadata: {"+tc.meta+"}, spec: {"+tc.spec+"}}")[0]
			_, pod, _ := Pod(object)
			if diff := cmp.Diff(tc.want, pod.Labels); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if _, template, _ := Template(object); len(template.Labels) > 1 {
				t.Errorf("the template has changed: %v", template.Labels)
			}
		})
	}
}
