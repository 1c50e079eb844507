package manifest

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pod returns the metadata of a workload and the pod that is made from its template: with
// what controllers add to it, as far as that follows from the manifest. It reports false
// as Template does.
func Pod(object runtime.Object) (*metav1.ObjectMeta, *corev1.Pod, bool) {
	meta, template, ok := Template(object)
	if !ok {
		return nil, nil, false
	}
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		pod.Spec.Volumes = withClaims(o)
	case *batchv1.Job:
		pod.Labels = withJobName(o)
	}
	return meta, pod, true
}

// withClaims returns the volumes of the pods of a StatefulSet: one for each claim, with the
// names of the first pod, and those of the template that have another name.
func withClaims(set *appsv1.StatefulSet) (volumes []corev1.Volume) {
	first := int32(0)
	if set.Spec.Ordinals != nil {
		first = set.Spec.Ordinals.Start
	}
	claimed := map[string]bool{}
	for _, claim := range set.Spec.VolumeClaimTemplates {
		claimed[claim.Name] = true
		volumes = append(volumes, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("%s-%s-%d", claim.Name, set.Name, first)},
		}})
	}
	others := slices.Clone(set.Spec.Template.Spec.Volumes)
	return append(volumes, slices.DeleteFunc(others, func(v corev1.Volume) bool { return claimed[v.Name] })...)
}

// withJobName returns the labels of the pods of a Job: with its name where that is known, and
// where the API server chooses their selector.
func withJobName(job *batchv1.Job) map[string]string {
	if job.Name == "" || job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return job.Spec.Template.Labels
	}
	labels := map[string]string{batchv1.JobNameLabel: job.Name, "job-name": job.Name}
	maps.Copy(labels, job.Spec.Template.Labels)
	return labels
}
