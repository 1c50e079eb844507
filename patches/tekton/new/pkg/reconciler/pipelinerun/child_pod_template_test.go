package pipelinerun

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestAChildPipelineRunInheritsThePodTemplate(t *testing.T) {
	template := func(value string) *pod.Template {
		return &pod.Template{Env: []corev1.EnvVar{{Name: "MSG", Value: value}}}
	}
	pr := &v1.PipelineRun{Spec: v1.PipelineRunSpec{
		TaskRunTemplate: v1.PipelineTaskRunTemplate{PodTemplate: template("all")},
		TaskRunSpecs:    []v1.PipelineTaskRunSpec{{PipelineTaskName: "special", PodTemplate: template("one")}},
	}}
	for name, want := range map[string]string{"child": "all", "special": "one"} {
		spec := childPipelineRunSpec(&v1.PipelineTask{Name: name, PipelineSpec: &v1.PipelineSpec{}}, pr)
		if d := cmp.Diff(template(want), spec.TaskRunTemplate.PodTemplate); d != "" {
			t.Errorf("%s: -want, +got: %s", name, d)
		}
	}
	child := childPipelineRunSpec(&v1.PipelineTask{Name: "child"}, pr)
	child.TaskRunTemplate.PodTemplate.Env[0].Value = "changed"
	if d := cmp.Diff(template("all"), pr.Spec.TaskRunTemplate.PodTemplate); d != "" {
		t.Errorf("a change of the child's pod template is one of the parent's: -want, +got: %s", d)
	}
	none := childPipelineRunSpec(&v1.PipelineTask{Name: "child"}, &v1.PipelineRun{})
	if none.TaskRunTemplate.PodTemplate != nil {
		t.Errorf("without pod template: %v", none.TaskRunTemplate.PodTemplate)
	}
}
