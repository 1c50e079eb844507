package tekton

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachExampleIsReadInBothVersions(t *testing.T) {
	for _, e := range Examples {
		objects, err := Objects(e.Manifest)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		run := objects[len(objects)-1]
		if !strings.HasSuffix(run.GetKind(), "Run") {
			t.Errorf("%s: the last object is a %s", e.Name, run.GetKind())
		}
		if (e.Refused == "") != (len(e.Want) > 0) {
			t.Errorf("%s: it is either refused or has steps", e.Name)
		}
		if got := In("v1", run).GetAPIVersion(); got != "tekton.dev/v1" {
			t.Errorf("%s: in v1 it is of %s", e.Name, got)
		}
	}
}

func TestInV1APipelineRunHasItsPodTemplateInTaskRunTemplate(t *testing.T) {
	objects, err := Objects(`
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
spec:
  podTemplate: {env: [{name: A}]}
  taskRunSpecs: [{pipelineTaskName: t, taskPodTemplate: {env: [{name: B}]}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Objects(`
apiVersion: tekton.dev/v1
kind: PipelineRun
spec:
  taskRunTemplate: {podTemplate: {env: [{name: A}]}}
  taskRunSpecs: [{pipelineTaskName: t, podTemplate: {env: [{name: B}]}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want[0].Object, In("v1", objects[0]).Object); d != "" {
		t.Errorf("-want, +got: %s", d)
	}
	if objects[0].GetAPIVersion() != "tekton.dev/v1beta1" {
		t.Error("the original was changed")
	}
}

func TestAnExampleChecksWhatItsStepsSaw(t *testing.T) {
	e := Example{Name: "e", Want: []map[string]string{{"A": "%RUN%"}}}
	for env, ok := range map[string]bool{"A=r": true, "A=x": false, "B=r": false} {
		name, value, _ := strings.Cut(env, "=")
		err := e.check("r", "ns", []Step{{Env: map[string]string{name: value}}})
		if (err == nil) != ok {
			t.Errorf("%s: %v", env, err)
		}
	}
	if e.check("r", "ns", nil) == nil {
		t.Error("no step ran, and that is no error")
	}
}
