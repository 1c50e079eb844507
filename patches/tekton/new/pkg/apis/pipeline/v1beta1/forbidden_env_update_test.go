package v1beta1_test

import (
	"context"
	"testing"

	"github.com/tektoncd/pipeline/pkg/apis/config"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/v1beta1"
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

// run is a TaskRun or a PipelineRun of one of the versions.
type run interface {
	apis.Defaultable
	apis.Validatable
}

var makeRun = map[string]func(meta metav1.ObjectMeta, tpl *pod.Template, cancelled bool) run{
	"v1 TaskRun": func(meta metav1.ObjectMeta, tpl *pod.Template, cancelled bool) run {
		r := &v1.TaskRun{ObjectMeta: meta, Spec: v1.TaskRunSpec{TaskRef: &v1.TaskRef{Name: "t"}, PodTemplate: tpl}}
		if cancelled {
			r.Spec.Status = v1.TaskRunSpecStatusCancelled
		}
		return r
	},
	"v1 PipelineRun": func(meta metav1.ObjectMeta, tpl *pod.Template, cancelled bool) run {
		r := &v1.PipelineRun{ObjectMeta: meta, Spec: v1.PipelineRunSpec{PipelineRef: &v1.PipelineRef{Name: "p"}, TaskRunTemplate: v1.PipelineTaskRunTemplate{PodTemplate: tpl}}}
		if cancelled {
			r.Spec.Status = v1.PipelineRunSpecStatusCancelled
		}
		return r
	},
	"v1beta1 TaskRun": func(meta metav1.ObjectMeta, tpl *pod.Template, cancelled bool) run {
		r := &v1beta1.TaskRun{ObjectMeta: meta, Spec: v1beta1.TaskRunSpec{TaskRef: &v1beta1.TaskRef{Name: "t"}, PodTemplate: tpl}}
		if cancelled {
			r.Spec.Status = v1beta1.TaskRunSpecStatusCancelled
		}
		return r
	},
	"v1beta1 PipelineRun": func(meta metav1.ObjectMeta, tpl *pod.Template, cancelled bool) run {
		r := &v1beta1.PipelineRun{ObjectMeta: meta, Spec: v1beta1.PipelineRunSpec{PipelineRef: &v1beta1.PipelineRef{Name: "p"}, PodTemplate: tpl}}
		if cancelled {
			r.Spec.Status = v1beta1.PipelineRunSpecStatusCancelled
		}
		return r
	},
}

// TestForbiddenEnvInUpdates applies the manifests of runs again that existed before a name was forbidden,
// and before the variable of the default pod template had another value.
func TestForbiddenEnvInUpdates(t *testing.T) {
	created := withDefaults(corev1.EnvVar{Name: "DEFAULT", Value: "old"})
	ctx := withDefaults(corev1.EnvVar{Name: "DEFAULT", Value: "new"})
	meta := metav1.ObjectMeta{Name: "run", Finalizers: []string{"example.com/f"}}
	for name, tc := range map[string]struct {
		meta      metav1.ObjectMeta
		value     string
		cancelled bool
		refused   bool
	}{
		"metadata":      {meta: metav1.ObjectMeta{Name: "run"}, value: "1"},
		"cancel":        {meta: meta, value: "1", cancelled: true},
		"another value": {meta: meta, value: "2", refused: true},
	} {
		for kind, makeRun := range makeRun {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				before, after := makeRun(meta, template("1"), false), makeRun(tc.meta, template(tc.value), tc.cancelled)
				before.SetDefaults(apis.WithinCreate(created))
				after.SetDefaults(apis.WithinUpdate(ctx, before))
				if err := after.Validate(apis.WithinUpdate(ctx, before)); (err != nil) != tc.refused {
					t.Error(err)
				}
			})
		}
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
		for _, kind := range []string{"v1 TaskRun", "v1beta1 TaskRun"} {
			t.Run(name+" of a "+kind, func(t *testing.T) {
				tr := makeRun[kind](metav1.ObjectMeta{Name: "run"}, tc.tpl.DeepCopy(), false)
				tr.SetDefaults(apis.WithinCreate(ctx))
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
}
