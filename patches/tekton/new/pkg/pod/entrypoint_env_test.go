package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline"
	"github.com/tektoncd/pipeline/pkg/apis/pipeline/pod"
	v1 "github.com/tektoncd/pipeline/pkg/apis/pipeline/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakek8s "k8s.io/client-go/kubernetes/fake"
)

// TestPodTemplateEnv builds a pod of a step and a pod template, and compares the step's variables.
func TestPodTemplateEnv(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		step, template, want []corev1.EnvVar
	}{{
		name:     "an override stands in the place of the definition",
		step:     []corev1.EnvVar{{Name: "HOST", Value: "a"}, {Name: "URL", Value: "$(HOST)"}},
		template: []corev1.EnvVar{{Name: "NEW", Value: "$(URL)"}, {Name: "HOST", Value: "b"}},
		want:     []corev1.EnvVar{{Name: "HOST", Value: "b"}, {Name: "URL", Value: "$(HOST)"}, {Name: "NEW", Value: "$(URL)"}},
	}, {
		name:     "a pod template cannot steer the entrypoint",
		step:     []corev1.EnvVar{{Name: "A", Value: "1"}},
		template: []corev1.EnvVar{{Name: "TEKTON_PLATFORM_COMMANDS", Value: "{}"}, {Name: "TEKTON_RESOURCE_NAME", Value: "x"}, {Name: "TEKTON_HERMETIC", Value: "0"}, {Name: "A", Value: "2"}},
		want:     []corev1.EnvVar{{Name: "A", Value: "2"}},
	}} {
		t.Run(tc.name, func(t *testing.T) {
			client := fakek8s.NewSimpleClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "ns"}})
			tr := &v1.TaskRun{ObjectMeta: metav1.ObjectMeta{Name: "run", Namespace: "ns"}, Spec: v1.TaskRunSpec{
				ServiceAccountName: "default", PodTemplate: &pod.Template{Env: tc.template},
			}}
			built, err := (&Builder{Images: pipeline.Images{}, KubeClient: client}).Build(t.Context(), tr, v1.TaskSpec{Steps: []v1.Step{{
				Name: "step", Image: "image", Command: []string{"cmd"}, Env: tc.step,
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, built.Spec.Containers[0].Env); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}
