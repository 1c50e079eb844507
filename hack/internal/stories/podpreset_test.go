package stories

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestPresetThatIsNotSeenIsAnError has a fake API server that injects, and a container that
// prints nothing of it: the log of the fake client is "fake logs".
func TestPresetThatIsNotSeenIsAnError(t *testing.T) {
	client := succeedingClient(t)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*v1.Pod)
		pod.Annotations = map[string]string{"podpreset.admission.kubernetes.io/podpreset-allow-database": "1"}
		pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}}
		return false, nil, nil
	})
	presets := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{podPresets: "PodPresetList"})
	_, err := Preset(t.Context(), client, presets, nil)
	if err == nil || !strings.Contains(err.Error(), "did not see DB_PORT of the PodPreset allow-database") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
}

func TestPrintInjected(t *testing.T) {
	var out strings.Builder
	PrintInjected(&out, &Injected{Preset: "p", Pod: "website", Container: "c", Added: injectedInto(v1.Container{
		Env:          []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}},
		VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/cache"}, {Name: "t", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
	})})
	want := "PodPreset p: container c of pod website got\n    env DB_PORT=6379\n    mount /cache of volume v\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
