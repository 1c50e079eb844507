package pods

import (
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/test/e2e/framework"
)

// TestRunToEnd also guards that a pod which fails makes the spec fail: an assertion
// whose result is dropped would let every spec pass.
func TestRunToEnd(t *testing.T) {
	gomega.RegisterTestingT(t)
	for name, test := range map[string]struct {
		status v1.PodStatus // of the pod, from its creation on
		want   string       // in the failure; empty: none
	}{
		"a pod that succeeds":      {v1.PodStatus{Phase: v1.PodSucceeded}, ""},
		"a pod that fails":         {v1.PodStatus{Phase: v1.PodFailed}, "the pod failed"},
		"a container that waits":   {waiting(ConfigError), "container main cannot start: " + ConfigError},
		"an image that is missing": {waiting("ErrImageNeverPull"), "container main cannot start: ErrImageNeverPull"},
	} {
		t.Run(name, func(t *testing.T) {
			f := frameworkWith(test.status)
			start := time.Now()
			failures := gomega.InterceptGomegaFailures(func() {
				RunToEnd(t.Context(), f, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}})
			})
			if text := strings.Join(failures, "\n"); (text != "") != (test.want != "") || !strings.Contains(text, test.want) {
				t.Errorf("got failures %q, want %q", text, test.want)
			}
			if took := time.Since(start); took > timeout/2 {
				t.Errorf("took %s: what cannot end well must end at once", took)
			}
		})
	}
}

func TestANudgeThatTheAPIServerTakesTooLongForFailsNoSpec(t *testing.T) {
	for _, test := range []struct {
		err   error
		fails bool
	}{
		{nil, false},
		{apierrors.NewTimeoutError("request did not complete within requested timeout", 0), false},
		{apierrors.NewForbidden(v1.Resource("pods"), "pod", nil), true},
	} {
		f := frameworkWith(v1.PodStatus{})
		f.ClientSet.(*fake.Clientset).PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &v1.Pod{}, test.err
		})
		func() {
			defer func() { // ginkgo ends a spec that fails by a panic
				if failed := recover() != nil; failed != test.fails {
					t.Errorf("the error %v fails the spec: %t, want %t", test.err, failed, test.fails)
				}
			}()
			Nudge(t.Context(), f, "pod")
		}()
	}
}

func TestStuckIsNoContainerThatTheKubeletStartsByItself(t *testing.T) {
	for message, want := range map[string]bool{
		`configmap "settings" not found`:                                      true,
		"failed to sync configmap cache: timed out waiting for the condition": false,
		"failed to sync secret cache: timed out waiting for the condition":    false,
	} {
		status := waiting(ConfigError).ContainerStatuses[0]
		status.State.Waiting.Message = message
		if got := stuck(status); got != want {
			t.Errorf("%s: stuck is %v, want %v", message, got, want)
		}
	}
}

func TestShellThatDropsNamesIsRefused(t *testing.T) {
	shell := func(script, name string) v1.Container {
		return v1.Container{Name: "c", Command: []string{"/bin/sh", "-c", script}, Env: []v1.EnvVar{{Name: name}}}
	}
	from := shell("echo $A", "A")
	from.EnvFrom = []v1.EnvFromSource{{}}
	fromAndPrints := shell("env | sort", "A")
	fromAndPrints.EnvFrom = []v1.EnvFromSource{{}}
	for name, test := range map[string]struct {
		container v1.Container
		refused   bool
	}{
		"a shell that prints a special name":             {shell("env", "a:b"), true},
		"a shell that prints it after something else":    {shell("true; printenv 'a:b'", "a:b"), true},
		"a shell that prints what comes through envFrom": {fromAndPrints, true},
		"a shell that prints identifiers":                {shell("env", "A"), false},
		"a shell that does something else":               {shell("cat /data/config.env", "a:b"), false},
		"a shell that uses envFrom":                      {from, false},
		"no shell":                                       {v1.Container{Command: []string{"env"}, Env: []v1.EnvVar{{Name: "a:b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkPrintsAll(test.container); (err != nil) != test.refused {
				t.Errorf("error %v, want one: %t", err, test.refused)
			}
		})
	}
}

func TestStatusFindsContainersOfEveryKind(t *testing.T) {
	pod := &v1.Pod{Status: v1.PodStatus{
		InitContainerStatuses:      []v1.ContainerStatus{{Name: "init", RestartCount: 1}},
		ContainerStatuses:          []v1.ContainerStatus{{Name: "main", RestartCount: 2}},
		EphemeralContainerStatuses: []v1.ContainerStatus{{Name: "debug", RestartCount: 3}},
	}}
	for name, want := range map[string]int32{"init": 1, "main": 2, "debug": 3, "none": 0} {
		if got := Status(pod, name).RestartCount; got != want {
			t.Errorf("%s: got the status with %d restarts, want %d", name, got, want)
		}
	}
}

func waiting(reason string) v1.PodStatus {
	return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
		Name: "main", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}},
	}}}
}

// frameworkWith has a fake API server that gives every new pod status.
func frameworkWith(status v1.PodStatus) *framework.Framework {
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		action.(clienttesting.CreateAction).GetObject().(*v1.Pod).Status = status
		return false, nil, nil
	})
	return &framework.Framework{ClientSet: client, Namespace: &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
}
