package preset

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"podenv.dev/staging/src/k8s.io/component-helpers/settings/inject"
)

// groupVersion is what PodPresets are served as.
var groupVersion = schema.GroupVersion{Group: "settings.k8s.io", Version: "v1alpha1"}

// PodPreset is the object of settings.k8s.io/v1alpha1, which the libraries of Kubernetes
// that this module is built with do not have.
type PodPreset struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Selector     metav1.LabelSelector   `json:"selector,omitempty"`
		Env          []corev1.EnvVar        `json:"env,omitempty"`
		EnvFrom      []corev1.EnvFromSource `json:"envFrom,omitempty"`
		Volumes      []corev1.Volume        `json:"volumes,omitempty"`
		VolumeMounts []corev1.VolumeMount   `json:"volumeMounts,omitempty"`
	} `json:"spec,omitempty"`
}

// DeepCopyObject is what the decoder asks of an object; nothing here changes one.
func (p *PodPreset) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// newScheme is client-go's with PodPresets.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err) // the types of client-go, which a test adds
	}
	s.AddKnownTypes(groupVersion, &PodPreset{})
	metav1.AddToGroupVersion(s, groupVersion)
	return s
}

// setDefaults gives the preset's content the defaults that a pod's has.
func (p *PodPreset) setDefaults() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Volumes:    p.Spec.Volumes,
		Containers: []corev1.Container{{Env: p.Spec.Env, EnvFrom: p.Spec.EnvFrom, VolumeMounts: p.Spec.VolumeMounts}},
	}}
	defaults.SetObjectDefaults_Pod(pod)
	c := pod.Spec.Containers[0]
	p.Spec.Env, p.Spec.EnvFrom, p.Spec.VolumeMounts = c.Env, c.EnvFrom, c.VolumeMounts
	p.Spec.Volumes = pod.Spec.Volumes
}

// stored adds the presets of files to those of a cluster. One that the cluster has exactly so
// keeps its age. An edited one takes the place of its stored version, as a new one: the spec
// of a preset cannot be changed.
func stored(cluster, files []*PodPreset) []*PodPreset {
	all := slices.Clone(cluster)
	for _, p := range files {
		p.setDefaults()
		at := slices.IndexFunc(all, func(other *PodPreset) bool { return other.Namespace == p.Namespace && other.Name == p.Name })
		switch {
		case at < 0:
			all = append(all, p)
		case !equality.Semantic.DeepEqual(all[at].Spec, p.Spec):
			all = append(slices.Delete(all, at, at+1), p)
		}
	}
	return all
}

// prepared are the presets of a namespace as they are applied: those of a cluster by age,
// and behind them those of files, which have none, in the order of the files.
func prepared(presets []*PodPreset, namespace string) []*inject.Preset {
	var found []*inject.Preset
	for i, p := range presets {
		if p.Namespace != namespace || p.DeletionTimestamp != nil {
			continue
		}
		p.setDefaults()
		ready := &inject.Preset{
			Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Created: p.CreationTimestamp,
			Broken: broken(p),
			Env:    p.Spec.Env, EnvFrom: p.Spec.EnvFrom, Volumes: p.Spec.Volumes, VolumeMounts: p.Spec.VolumeMounts,
		}
		if ready.Created.IsZero() {
			ready.Created = metav1.NewTime(time.Now().AddDate(1, 0, i))
		}
		if ready.UID == "" {
			ready.UID = types.UID(p.Namespace + "/" + p.Name)
		}
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.Selector)
		if err != nil || selector.Empty() {
			continue // The API server takes no such preset: Read has said so.
		}
		ready.Selector = selector
		found = append(found, ready)
	}
	slices.SortFunc(found, inject.Compare)
	return found
}
