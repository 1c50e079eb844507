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

package v1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestDefaultEnvIsThatOfTaskRuns has a default pod template with a forbidden variable, and a
// PipelineRun that sets none: a TaskRun that it creates after the default has changed is not
// refused for what the default was.
func TestDefaultEnvIsThatOfTaskRuns(t *testing.T) {
	ctx := withDefaults(corev1.EnvVar{Name: "TEST_ENV", Value: "old"})
	config.FromContext(ctx).Defaults.DefaultPodTemplate.NodeSelector = map[string]string{"a": "b"}
	pr := &v1.PipelineRun{Spec: v1.PipelineRunSpec{PipelineRef: &v1.PipelineRef{Name: "p"}}}
	pr.SetDefaults(ctx)
	podTemplate := pr.Spec.TaskRunTemplate.PodTemplate
	if d := cmp.Diff(&pod.Template{NodeSelector: map[string]string{"a": "b"}}, podTemplate); d != "" {
		t.Errorf("PipelineRun: -want, +got: %s", d)
	}

	changed := withDefaults(corev1.EnvVar{Name: "TEST_ENV", Value: "new"})
	tr := &v1.TaskRun{Spec: v1.TaskRunSpec{TaskRef: &v1.TaskRef{Name: "t"}, PodTemplate: podTemplate.DeepCopy()}}
	tr.Name = "run"
	tr.SetDefaults(changed)
	if err := tr.Validate(changed); err != nil {
		t.Errorf("TaskRun: %v", err)
	}
	if d := cmp.Diff([]corev1.EnvVar{{Name: "TEST_ENV", Value: "new"}}, tr.Spec.PodTemplate.Env); d != "" {
		t.Errorf("TaskRun: -want, +got: %s", d)
	}
}

func TestPipelineRunHasNoPodTemplateWhereTheDefaultHasOnlyVariables(t *testing.T) {
	pr := &v1.PipelineRun{Spec: v1.PipelineRunSpec{PipelineRef: &v1.PipelineRef{Name: "p"}}}
	pr.SetDefaults(withDefaults(corev1.EnvVar{Name: "A", Value: "x"}))
	if pr.Spec.TaskRunTemplate.PodTemplate != nil {
		t.Errorf("pod template %v", pr.Spec.TaskRunTemplate.PodTemplate)
	}
}
