package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// tplOf has the variables and volumes of the names, each with value. A node selector of value is set
// if it is among them.
func tplOf(value string, names ...string) *Template {
	tpl := &Template{}
	for _, name := range names {
		if name == "nodeSelector" {
			tpl.NodeSelector = map[string]string{"pool": value}
			continue
		}
		tpl.Env = append(tpl.Env, corev1.EnvVar{Name: name, Value: value})
		tpl.Volumes = append(tpl.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: value}},
		}})
	}
	return tpl
}

func withoutVolumes(tpl *Template) *Template { tpl.Volumes = nil; return tpl }
func withoutEnv(tpl *Template) *Template     { tpl.Env = nil; return tpl }

// TestTemplateAfterUpdateInStock has a run of stock Tekton, which has its own variables in front.
func TestTemplateAfterUpdateInStock(t *testing.T) {
	old := tplOf("x", "RUN", "D")
	got := TemplateAfterUpdate(tplOf("x", "RUN"), old, tplOf("x", "D"))
	if d := cmp.Diff(old, got); d != "" {
		t.Errorf("-want, +got: %s", d)
	}
}

// TestTemplateAfterUpdate creates a run with a default, and updates it when the default may be another.
func TestTemplateAfterUpdate(t *testing.T) {
	for _, tc := range []struct {
		name                string
		created, before     *Template // the manifest and the default
		updated, defaultTpl *Template
		stays               bool
	}{
		{"the same manifest", tplOf("run", "RUN"), tplOf("d", "D", "nodeSelector"), tplOf("run", "RUN"), tplOf("d", "D", "nodeSelector"), true},
		{"the same without a pod template", nil, tplOf("d", "D", "nodeSelector"), nil, tplOf("d", "D", "nodeSelector"), true},
		{"an empty one", nil, nil, &Template{}, tplOf("d", "D"), true},
		{"an override", tplOf("run", "D"), tplOf("d", "D"), tplOf("run", "D"), tplOf("d", "D"), true},
		{"what an apply leaves", tplOf("run", "RUN"), tplOf("d", "D", "nodeSelector"), MergePodTemplateWithDefault(tplOf("run", "RUN"), tplOf("d", "nodeSelector")), tplOf("d", "D", "nodeSelector"), true},
		{"the run as it is", tplOf("run", "RUN"), tplOf("d", "D"), MergePodTemplateWithDefault(tplOf("run", "RUN"), tplOf("d", "D")), tplOf("d", "E"), true},
		{"the default has other values", tplOf("run", "RUN"), tplOf("d", "D", "nodeSelector"), tplOf("run", "RUN"), tplOf("new", "D", "nodeSelector"), true},
		{"the default has more", tplOf("run", "RUN"), tplOf("d", "D"), tplOf("run", "RUN"), tplOf("d", "D", "E", "nodeSelector"), true},
		{"the default has less", tplOf("run", "RUN"), tplOf("d", "D", "E"), tplOf("run", "RUN"), tplOf("d", "D"), false},
		{"another value", tplOf("run", "RUN"), tplOf("d", "D"), tplOf("other", "RUN"), tplOf("d", "D"), false},
		{"another value of a default", tplOf("run", "RUN"), tplOf("d", "D"), tplOf("run", "RUN", "D"), tplOf("d", "D"), false},
		{"a variable more", tplOf("run", "RUN"), tplOf("d", "D"), tplOf("run", "RUN", "MORE"), tplOf("d", "D"), false},
		{"a variable less", tplOf("run", "RUN", "MORE"), tplOf("d", "D"), tplOf("run", "RUN"), tplOf("d", "D"), false},
		{"the first variable less", withoutVolumes(tplOf("run", "MORE", "RUN")), tplOf("d", "D"), withoutVolumes(tplOf("run", "RUN")), tplOf("d", "D"), false},
		{"the last volume less", withoutEnv(tplOf("run", "RUN", "MORE")), tplOf("d", "D"), withoutEnv(tplOf("run", "RUN")), tplOf("d", "D"), false},
		{"a field less", tplOf("run", "RUN", "nodeSelector"), tplOf("d", "D"), tplOf("run", "RUN"), tplOf("new", "D"), false},
		{"a pod template less", tplOf("run", "RUN"), tplOf("d", "D"), nil, tplOf("d", "D"), false},
		{"a variable less without a default", tplOf("run", "RUN", "MORE"), nil, tplOf("run", "RUN"), nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			old := MergePodTemplateWithDefault(tc.created.DeepCopy(), tc.before)
			want := tc.updated.DeepCopy()
			if tc.stays {
				want = old.DeepCopy()
			}
			before := old.DeepCopy()
			got := TemplateAfterUpdate(tc.updated, old, tc.defaultTpl)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
			if d := cmp.Diff(before, old); d != "" {
				t.Errorf("the run has changed: %s", d)
			}
		})
	}
}
