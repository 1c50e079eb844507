package inject

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

var start = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// preset makes a preset for pods of role frontend.
func preset(name string, change func(*Preset)) *Preset {
	p := &Preset{
		Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7", Created: start,
		Selector: labels.SelectorFromSet(labels.Set{"role": "frontend"}),
	}
	change(p)
	return p
}

// database is the preset of the document's first example.
func database() *Preset {
	return preset("allow-database", func(p *Preset) {
		p.Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}}
		p.VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
		p.Volumes = []v1.Volume{emptyDir("cache-volume")}
	})
}

func emptyDir(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
}

func hostPath(name, path string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}}
}

func configMap(name string) v1.EnvFromSource {
	return v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
}

func fileVar(name, volume string) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{VolumeName: volume, Path: "f", Key: name}}}
}

// website is the pod of the document's examples.
func website(change func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "website", Labels: map[string]string{"app": "website", "role": "frontend"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "website", Image: "ecorp/website"}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func TestExempt(t *testing.T) {
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"no annotation":          {nil, false},
		"excluded":               {map[string]string{ExcludeAnnotation: "true"}, true},
		"not excluded":           {map[string]string{ExcludeAnnotation: "false"}, false},
		"mirror of a static pod": {map[string]string{v1.MirrorPodAnnotationKey: "x"}, true},
	} {
		if got := Exempt(website(func(pod *v1.Pod) { pod.Annotations = tt.annotations })); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
}

func TestCompareIsByAgeThenName(t *testing.T) {
	old := preset("z", func(*Preset) {})
	young := preset("a", func(p *Preset) { p.Created = metav1.NewTime(start.Add(time.Second)) })
	twin := preset("zz", func(*Preset) {})
	if Compare(old, young) >= 0 || Compare(young, old) <= 0 || Compare(old, twin) >= 0 || Compare(old, old) != 0 {
		t.Error("presets are not ordered by age, then by name")
	}
}
