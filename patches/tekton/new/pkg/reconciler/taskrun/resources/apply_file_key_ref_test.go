/*
Copyright 2026 The Tekton Authors

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
