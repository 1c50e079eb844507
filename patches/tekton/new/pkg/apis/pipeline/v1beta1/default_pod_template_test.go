package v1beta1_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/apis"
)

// withDefault is a context whose default pod template has value in each of its fields.
func withDefault(value string) context.Context {
	cfg := config.FromContextOrDefaults(context.Background())
	cfg.Defaults = cfg.Defaults.DeepCopy()
	cfg.Defaults.DefaultPodTemplate = &pod.Template{
		NodeSelector: map[string]string{"default": value},
		Env:          []corev1.EnvVar{{Name: value, Value: value}},
		Volumes:      []corev1.Volume{{Name: value}},
	}
	return config.ToContext(context.Background(), cfg)
}

// TestTheDefaultPodTemplateJoinsARunAtItsCreation changes the default after a run was created. No
// update, and nothing that the controller does, gives the run the new one.
func TestTheDefaultPodTemplateJoinsARunAtItsCreation(t *testing.T) {
	for name, run := range map[string]interface {
		apis.Defaultable
		runtime.Object
	}{
		"v1 TaskRun":          &v1.TaskRun{},
		"v1 PipelineRun":      &v1.PipelineRun{},
		"v1beta1 TaskRun":     &v1beta1.TaskRun{},
		"v1beta1 PipelineRun": &v1beta1.PipelineRun{},
	} {
		t.Run(name, func(t *testing.T) {
			run.SetDefaults(apis.WithinCreate(withDefault("BEFORE")))
			created := run.DeepCopyObject()
			if text, err := json.Marshal(created); err != nil || !strings.Contains(string(text), `{"default":"BEFORE"}`) {
				t.Fatalf("created without the default: %s, %v", text, err)
			}
			later := withDefault("AFTER")
			run.SetDefaults(apis.WithinUpdate(later, created))
			run.SetDefaults(later)
			if d := cmp.Diff(created, run); d != "" {
				t.Errorf("-created, +updated: %s", d)
			}
		})
	}
}

// TestTheManifestOfARunIsAppliedAgain updates runs as "kubectl replace" does with the manifest that they
// were created from, which has nothing of the default pod template.
func TestTheManifestOfARunIsAppliedAgain(t *testing.T) {
	own := &pod.Template{Env: []corev1.EnvVar{{Name: "OWN", Value: "x"}}}
	for name, run := range map[string]interface {
		apis.Defaultable
		apis.Validatable
		runtime.Object
	}{
		"v1 TaskRun":              &v1.TaskRun{Spec: v1.TaskRunSpec{TaskRef: &v1.TaskRef{Name: "t"}, PodTemplate: own}},
		"v1 PipelineRun":          &v1.PipelineRun{Spec: v1.PipelineRunSpec{PipelineRef: &v1.PipelineRef{Name: "p"}, TaskRunTemplate: v1.PipelineTaskRunTemplate{PodTemplate: own}}},
		"v1beta1 TaskRun":         &v1beta1.TaskRun{Spec: v1beta1.TaskRunSpec{TaskRef: &v1beta1.TaskRef{Name: "t"}, PodTemplate: own}},
		"v1beta1 PipelineRun":     &v1beta1.PipelineRun{Spec: v1beta1.PipelineRunSpec{PipelineRef: &v1beta1.PipelineRef{Name: "p"}, PodTemplate: own}},
		"TaskRun without one":     &v1.TaskRun{Spec: v1.TaskRunSpec{TaskRef: &v1.TaskRef{Name: "t"}}},
		"PipelineRun without one": &v1.PipelineRun{Spec: v1.PipelineRunSpec{PipelineRef: &v1.PipelineRef{Name: "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			run.(metav1.Object).SetName("run")
			created, replaced := run.DeepCopyObject(), run.DeepCopyObject()
			created.(apis.Defaultable).SetDefaults(apis.WithinCreate(withDefault("DEFAULT")))
			update := apis.WithinUpdate(withDefault("DEFAULT"), created)
			replaced.(apis.Defaultable).SetDefaults(update)
			if err := replaced.(apis.Validatable).Validate(update); err != nil {
				t.Error(err)
			}
		})
	}
}
