package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	v1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// TestAStepsVariableReplacesThatOfTheStepTemplate merges each kind of value with each other kind.
func TestAStepsVariableReplacesThatOfTheStepTemplate(t *testing.T) {
	ref := corev1.LocalObjectReference{Name: "object"}
	kinds := map[string]corev1.EnvVar{
		"value":           {Value: "x"},
		"empty value":     {},
		"secretKeyRef":    {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref, Key: "k"}}},
		"configMapKeyRef": {ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref, Key: "k"}}},
		"fieldRef":        {ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		"fileKeyRef":      {ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "p", Key: "k"}}},
	}
	for template, inTemplate := range kinds {
		for step, inStep := range kinds {
			t.Run(step+" over "+template, func(t *testing.T) {
				inTemplate.Name, inStep.Name = "A", "A"
				ofTemplate, ofStep := []corev1.EnvVar{inTemplate, {Name: "B", Value: "template"}}, []corev1.EnvVar{inStep}
				want := []corev1.EnvVar{inStep, {Name: "B", Value: "template"}}
				merged, err := v1.MergeStepsWithStepTemplate(&v1.StepTemplate{Env: ofTemplate}, []v1.Step{{Name: "step", Image: "image", Env: ofStep}})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, merged[0].Env); d != "" {
					t.Errorf("v1: -want, +got: %s", d)
				}
				old, err := v1beta1.MergeStepsWithStepTemplate(&v1beta1.StepTemplate{Env: ofTemplate}, []v1beta1.Step{{Name: "step", Image: "image", Env: ofStep}})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, old[0].Env); d != "" {
					t.Errorf("v1beta1: -want, +got: %s", d)
				}
			})
		}
	}
}

// TestAStepsVariablesThatTheStepTemplateLacksStay has names that a step defines several times: each
// definition is in the pod, as where there is no stepTemplate.
func TestAStepsVariablesThatTheStepTemplateLacksStay(t *testing.T) {
	for name, env := range map[string][]corev1.EnvVar{
		"extended": {{Name: "PATH", Value: "/a"}, {Name: "PATH", Value: "$(PATH):/b"}},
		"seen":     {{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)"}, {Name: "A", Value: "2"}},
		"empty":    {{Name: "A", Value: "1"}, {Name: "A"}},
	} {
		t.Run(name, func(t *testing.T) {
			merged, err := v1.MergeStepsWithStepTemplate(&v1.StepTemplate{WorkingDir: "/w"}, []v1.Step{{Name: "step", Image: "image", Env: env}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(env, merged[0].Env); d != "" {
				t.Errorf("v1: -want, +got: %s", d)
			}
			old, err := v1beta1.MergeStepsWithStepTemplate(&v1beta1.StepTemplate{WorkingDir: "/w"}, []v1beta1.Step{{Name: "step", Image: "image", Env: env}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(env, old[0].Env); d != "" {
				t.Errorf("v1beta1: -want, +got: %s", d)
			}
		})
	}
}

// TestWhatAStepDefinesTwiceIsMergedAsInStockTekton has names that both define, one of them twice.
func TestWhatAStepDefinesTwiceIsMergedAsInStockTekton(t *testing.T) {
	once, twice := []corev1.EnvVar{{Name: "A", Value: "x"}}, []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "$(A)2"}}
	for _, tc := range []struct {
		name                 string
		template, step, want []corev1.EnvVar
	}{
		{"the step", once, twice, twice[:1]},
		{"the stepTemplate", twice, once, []corev1.EnvVar{once[0], twice[1]}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			merged, err := v1.MergeStepsWithStepTemplate(&v1.StepTemplate{Env: tc.template}, []v1.Step{{Name: "step", Image: "image", Env: tc.step}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, merged[0].Env); d != "" {
				t.Errorf("v1: -want, +got: %s", d)
			}
			old, err := v1beta1.MergeStepsWithStepTemplate(&v1beta1.StepTemplate{Env: tc.template}, []v1beta1.Step{{Name: "step", Image: "image", Env: tc.step}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, old[0].Env); d != "" {
				t.Errorf("v1beta1: -want, +got: %s", d)
			}
		})
	}
}
