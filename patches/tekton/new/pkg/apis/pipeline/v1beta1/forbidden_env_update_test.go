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

package v1beta1_test

import (
	"context"
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1beta1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
)

// withDefaults is a context in which TEST_ENV is forbidden and the default pod template has env.
func withDefaults(env ...corev1.EnvVar) context.Context {
	cfg := config.FromContextOrDefaults(context.Background())
	cfg.Defaults = cfg.Defaults.DeepCopy()
	cfg.Defaults.DefaultForbiddenEnv = []string{"TEST_ENV"}
	cfg.Defaults.DefaultPodTemplate = &pod.Template{Env: env}
	return config.ToContext(context.Background(), cfg)
}

func template(value string) *pod.Template {
	return &pod.Template{Env: []corev1.EnvVar{{Name: "TEST_ENV", Value: value}}}
}

// TestForbiddenEnvInUpdates updates runs that existed before a name was forbidden, and before the
// default pod template had the variable NEW.
func TestForbiddenEnvInUpdates(t *testing.T) {
	ctx := withDefaults(corev1.EnvVar{Name: "NEW", Value: "x"})
	for name, tc := range map[string]struct {
		edit    func(tr *v1beta1.TaskRun, pr *v1beta1.PipelineRun)
		refused bool
	}{
		"metadata": {edit: func(tr *v1beta1.TaskRun, pr *v1beta1.PipelineRun) { tr.Finalizers, pr.Finalizers = nil, nil }},
		"cancel": {edit: func(tr *v1beta1.TaskRun, pr *v1beta1.PipelineRun) {
			tr.Spec.Status, pr.Spec.Status = v1beta1.TaskRunSpecStatusCancelled, v1beta1.PipelineRunSpecStatusCancelled
		}},
		"another value": {refused: true, edit: func(tr *v1beta1.TaskRun, pr *v1beta1.PipelineRun) {
			tpl := template("2")
			tr.Spec.PodTemplate = tpl
			pr.Spec.PodTemplate = tpl
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tpl := template("1")
			meta := metav1.ObjectMeta{Name: "run", Finalizers: []string{"example.com/f"}}
			tr := &v1beta1.TaskRun{ObjectMeta: meta, Spec: v1beta1.TaskRunSpec{TaskRef: &v1beta1.TaskRef{Name: "t"}, PodTemplate: tpl}}
			pr := &v1beta1.PipelineRun{ObjectMeta: meta, Spec: v1beta1.PipelineRunSpec{PipelineRef: &v1beta1.PipelineRef{Name: "p"}, PodTemplate: tpl}}
			tr.SetDefaults(context.Background())
			pr.SetDefaults(context.Background())
			newTR, newPR := tr.DeepCopy(), pr.DeepCopy()
			tc.edit(newTR, newPR)
			newTR.SetDefaults(ctx)
			newPR.SetDefaults(ctx)
			if err := newTR.Validate(apis.WithinUpdate(ctx, tr)); (err != nil) != tc.refused {
				t.Errorf("TaskRun: %v", err)
			}
			if err := newPR.Validate(apis.WithinUpdate(ctx, pr)); (err != nil) != tc.refused {
				t.Errorf("PipelineRun: %v", err)
			}
		})
	}
}

func TestForbiddenEnvOfTheDefaultPodTemplatePasses(t *testing.T) {
	ctx := withDefaults(corev1.EnvVar{Name: "TEST_ENV", Value: "default"})
	for name, tc := range map[string]struct {
		tpl  *pod.Template
		want string
	}{
		"no pod template of its own": {},
		"another value":              {template("1"), `"TEST_ENV" is not a valid environment variable to define in the podTemplate: spec.podTemplate.env[TEST_ENV]`},
	} {
		t.Run(name, func(t *testing.T) {
			tr := &v1beta1.TaskRun{ObjectMeta: metav1.ObjectMeta{Name: "run"}, Spec: v1beta1.TaskRunSpec{TaskRef: &v1beta1.TaskRef{Name: "t"}, PodTemplate: tc.tpl}}
			tr.SetDefaults(ctx)
			got := ""
			if err := tr.Validate(apis.WithinCreate(ctx)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
