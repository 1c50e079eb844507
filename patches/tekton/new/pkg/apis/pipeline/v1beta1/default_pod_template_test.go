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
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/apis"
)

// TestTheDefaultPodTemplateJoinsARunAtItsCreation changes the default after a run was created. No
// update, and nothing that the controller does, gives the run the new one.
func TestTheDefaultPodTemplateJoinsARunAtItsCreation(t *testing.T) {
	withDefault := func(value string) context.Context {
		cfg := config.FromContextOrDefaults(context.Background())
		cfg.Defaults = cfg.Defaults.DeepCopy()
		cfg.Defaults.DefaultPodTemplate = &pod.Template{
			NodeSelector: map[string]string{"default": value},
			Env:          []corev1.EnvVar{{Name: value, Value: value}},
			Volumes:      []corev1.Volume{{Name: value}},
		}
		return config.ToContext(context.Background(), cfg)
	}
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
