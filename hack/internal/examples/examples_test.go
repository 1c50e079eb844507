package examples

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
)

// TestTellReplacesAnEarlierPodAndCleansUp uses a fake API server, on which every new pod
// has succeeded. The containers all print "fake logs", so that the check for the variable ends the
// story.
func TestTellReplacesAnEarlierPodAndCleansUp(t *testing.T) {
	client := succeedingClient(t, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "envfiles-story-1"}})
	_, err := run(t.Context(), client, nil, featuregates.Example{Gate: "EnvFiles", Pod: "story-1.yaml", Sets: []string{"CONFIG_VAR"}})
	if err == nil || !strings.Contains(err.Error(), "did not see CONFIG_VAR") {
		t.Fatalf("want an error that names the missing variable, got %v", err)
	}
	var verbs []string
	for _, action := range client.Actions() {
		verbs = append(verbs, strings.TrimSuffix(action.GetVerb()+"/"+action.GetSubresource(), "/"))
	}
	want := []string{"delete", "create", "get", "get/log", "delete"}
	if !slices.Equal(verbs, want) {
		t.Errorf("the API server was asked to %q, want %q", verbs, want)
	}
}

func TestANewClusterWithoutServiceAccountIsWaitedFor(t *testing.T) {
	client := succeedingClient(t)
	var refusals atomic.Int32
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refusals.Add(1) > 5 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errNoAccount)
	})
	_, err := runAll(t.Context(), client, nil, map[string]bool{"EnvFiles": true}, nil)
	if err == nil || !strings.Contains(err.Error(), "did not see") {
		t.Errorf("want the run to get as far as the log, got %v", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	waiting := func(reason string) v1.PodStatus {
		return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
			Name: "use-envfile", Image: "podenv.dev/envdump:1",
			State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: "message of the kubelet"}},
		}}}
	}
	for name, test := range map[string]struct {
		status v1.PodStatus
		want   string // in the error; empty: none
	}{
		"an image is not on the node":   {waiting("ErrImageNeverPull"), "lacks the image podenv.dev/envdump:1"},
		"the file lacks the key":        {waiting("CreateContainerConfigError"), "message of the kubelet"},
		"the pod failed":                {v1.PodStatus{Phase: v1.PodFailed}, "kubectl logs"},
		"the container is being set up": {waiting("ContainerCreating"), ""},
		"the pod is running":            {v1.PodStatus{Phase: v1.PodRunning}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := unfinished(&v1.Pod{Status: test.status})
			if _, final := errors.AsType[poll.Fatal](err); final != (test.want != "") {
				t.Fatalf("error %v", err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%q is not in %q", test.want, err)
			}
		})
	}
}

func TestAnAPIServerWithoutTheFieldIsNamed(t *testing.T) {
	client := succeedingClient(t)
	client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "p", nil)
	})
	_, err := runAll(t.Context(), client, nil, map[string]bool{"EnvFiles": true}, nil)
	if err == nil || !strings.Contains(err.Error(), "gates on in the API server") {
		t.Errorf("got %v", err)
	}
}

// TestAPresetThatIsNotSeenIsAnError has a fake API server that injects, and a container that
// prints nothing of it: the log of the fake client is "fake logs".
func TestAPresetThatIsNotSeenIsAnError(t *testing.T) {
	client := succeedingClient(t)
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*v1.Pod)
		pod.Annotations = map[string]string{"podpreset.admission.kubernetes.io/podpreset-allow-database": "1"}
		return false, nil, nil
	})
	objects := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}: "PodPresetList"})
	_, err := runAll(t.Context(), client, objects, map[string]bool{"PodPreset": true}, nil)
	if err == nil || !strings.Contains(err.Error(), "did not see DB_PORT of the PodPreset allow-database") {
		t.Errorf("got %v, want an error that names the variable", err)
	}
	left, err := objects.Resource(schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("the preset is left: %v (%v)", left, err)
	}
}
