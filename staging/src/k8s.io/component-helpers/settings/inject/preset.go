package inject

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// AnnotationPrefix is what the keys of all annotations of this feature start with.
	AnnotationPrefix = "podpreset.admission.kubernetes.io/"

	// ExcludeAnnotation keeps a pod as it is if its value is "true".
	ExcludeAnnotation = AnnotationPrefix + "exclude"

	appliedPrefix = AnnotationPrefix + "podpreset-"
)

// MaxNameLength is how many bytes the name of a preset can have: the key of the
// annotation that says that it was applied has no room for more.
const MaxNameLength = 63 - len("podpreset-")

// AppliedAnnotation is the key of the annotation on a pod that a preset was applied to.
// Its value is the preset's resource version.
func AppliedAnnotation(preset string) string {
	return appliedPrefix + preset
}

// Preset is a PodPreset, prepared for the pods of its namespace. What it holds is not
// changed by this package, and not shared with pods.
type Preset struct {
	Name            string
	UID             types.UID
	ResourceVersion string
	Created         metav1.Time

	// Selector matches the labels of the pods.
	Selector labels.Selector

	// Broken, if not empty, says why no pod can take this preset, as a sentence: it
	// is in conflict with every pod that it matches.
	Broken string

	Env          []v1.EnvVar
	EnvFrom      []v1.EnvFromSource
	Volumes      []v1.Volume
	VolumeMounts []v1.VolumeMount
}

// Compare orders presets as they are applied: the oldest first, and by name where two
// are of the same second.
func Compare(a, b *Preset) int {
	if c := a.Created.Time.Compare(b.Created.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// Exempt tells whether presets leave the pod alone, whatever its labels: it says so
// itself, or it is the mirror of a static pod, whose containers run already.
func Exempt(pod metav1.Object) bool {
	annotations := pod.GetAnnotations()
	_, mirror := annotations[v1.MirrorPodAnnotationKey]
	return mirror || annotations[ExcludeAnnotation] == "true"
}
