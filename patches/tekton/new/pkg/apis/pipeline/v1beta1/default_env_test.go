package v1beta1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
)

func podTemplate(r run) *pod.Template {
	switch r := r.(type) {
	case *v1.TaskRun:
		return r.Spec.PodTemplate
	case *v1.PipelineRun:
		return r.Spec.TaskRunTemplate.PodTemplate
	case *v1beta1.TaskRun:
		return r.Spec.PodTemplate
	default:
		return r.(*v1beta1.PipelineRun).Spec.PodTemplate
	}
}

// TestDefaultEnvIsThatOfTaskRuns has a default pod template with a forbidden variable, and a
// PipelineRun that sets none: a TaskRun that it creates after the default has changed is not
// refused for what the default was.
func TestDefaultEnvIsThatOfTaskRuns(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			ctx := withDefaults(corev1.EnvVar{Name: "TEST_ENV", Value: "old"})
			config.FromContext(ctx).Defaults.DefaultPodTemplate.NodeSelector = map[string]string{"a": "b"}
			pr := makeRun[version+" PipelineRun"](metav1.ObjectMeta{}, nil, false)
			pr.SetDefaults(apis.WithinCreate(ctx))
			if d := cmp.Diff(&pod.Template{NodeSelector: map[string]string{"a": "b"}}, podTemplate(pr)); d != "" {
				t.Errorf("PipelineRun: -want, +got: %s", d)
			}

			changed := withDefaults(corev1.EnvVar{Name: "TEST_ENV", Value: "new"})
			tr := makeRun[version+" TaskRun"](metav1.ObjectMeta{Name: "run"}, podTemplate(pr).DeepCopy(), false)
			tr.SetDefaults(apis.WithinCreate(changed))
			if err := tr.Validate(changed); err != nil {
				t.Errorf("TaskRun: %v", err)
			}
			if d := cmp.Diff([]corev1.EnvVar{{Name: "TEST_ENV", Value: "new"}}, podTemplate(tr).Env); d != "" {
				t.Errorf("TaskRun: -want, +got: %s", d)
			}
		})
	}
}

func TestPipelineRunHasNoPodTemplateWhereTheDefaultHasOnlyVariables(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1"} {
		pr := makeRun[version+" PipelineRun"](metav1.ObjectMeta{}, nil, false)
		pr.SetDefaults(apis.WithinCreate(withDefaults(corev1.EnvVar{Name: "A", Value: "x"})))
		if got := podTemplate(pr); got != nil {
			t.Errorf("%s: pod template %v", version, got)
		}
	}
}
