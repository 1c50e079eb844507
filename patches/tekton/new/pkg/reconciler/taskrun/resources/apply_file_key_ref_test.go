package resources_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/reconciler/taskrun/resources"
	corev1 "k8s.io/api/core/v1"
)

func fileVariable(volume, path, key string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{
		FileKeyRef: &corev1.FileKeySelector{VolumeName: volume, Path: path, Key: key},
	}}}
}

// TestParametersAreReplacedInFileKeyRef looks at a step, the stepTemplate and the pod template.
func TestParametersAreReplacedInFileKeyRef(t *testing.T) {
	before := fileVariable("$(params.volume)", "$(params.dir)/a.env", "$(params.key)")
	want := fileVariable("config", "env/a.env", "KEY")
	tr := &v1.TaskRun{Spec: v1.TaskRunSpec{Params: v1.Params{
		{Name: "volume", Value: *v1.NewStructuredValues("config")},
		{Name: "dir", Value: *v1.NewStructuredValues("env")},
		{Name: "key", Value: *v1.NewStructuredValues("KEY")},
	}}}
	template := resources.ApplyPodTemplateReplacements(&pod.Template{Env: before}, tr)
	if d := cmp.Diff(want, template.Env); d != "" {
		t.Errorf("pod template: -want, +got: %s", d)
	}
	spec := &v1.TaskSpec{StepTemplate: &v1.StepTemplate{Env: before}, Steps: []v1.Step{{Name: "s", Env: before}}}
	got := resources.ApplyParameters(spec.DeepCopy(), tr)
	if d := cmp.Diff(want, got.StepTemplate.Env); d != "" {
		t.Errorf("stepTemplate: -want, +got: %s", d)
	}
	if d := cmp.Diff(want, got.Steps[0].Env); d != "" {
		t.Errorf("step: -want, +got: %s", d)
	}
}
