package workloads

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"podenv.dev/test/e2e/internal/pods"
)

func TestObjectsAreOfTheirKind(t *testing.T) {
	for _, kind := range All {
		t.Run(kind.Name, func(t *testing.T) {
			pod := pods.Once("pod", pods.Dumps("main"))
			object := kind.Of("a", pod)
			typed, err := scheme.Scheme.New(object.GroupVersionKind())
			if err != nil {
				t.Fatal(err)
			}
			const unknownFields = true // are errors
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, unknownFields); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(pod.Spec.Containers, kind.TemplateOf(object).Spec.Containers); diff != "" {
				t.Errorf("the template (-want +got):\n%s", diff)
			}
		})
	}
}
