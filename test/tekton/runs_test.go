package tekton

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// The API server answers a request for the log of a pod without a node with nothing, and no error.
func TestAPodWithoutANodeHasNoSteps(t *testing.T) {
	objects, err := Objects("apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: run}")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run-pod", Labels: map[string]string{"tekton.dev/taskRun": "run"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "step-main"}}},
	}
	c := &Client{Kube: fake.NewClientset(pod), Namespace: "ns"}
	if steps, err := c.Steps(t.Context(), objects[0]); err == nil {
		t.Errorf("the pod has the steps %v", steps)
	}
	pod.Spec.NodeName = "node"
	c.Kube = fake.NewClientset(pod)
	if steps, err := c.Steps(t.Context(), objects[0]); err != nil || len(steps) != 1 {
		t.Errorf("with a node it has the steps %v: %v", steps, err)
	}
}

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
