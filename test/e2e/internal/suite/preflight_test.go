package suite

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

func TestAwaitNodesSaysWhyNoneTakesPods(t *testing.T) {
	cordoned := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Unschedulable: true}}
	for name, test := range map[string]struct {
		nodes       []runtime.Object
		interrupted bool
		want        string
	}{
		"a cluster without nodes":         {nil, false, "none of the cluster's 0 nodes takes pods: kubectl get nodes"},
		"a node that is cordoned":         {[]runtime.Object{cordoned}, false, "none of the cluster's 1 nodes takes pods: kubectl get nodes"},
		"somebody does not wait that out": {[]runtime.Object{cordoned}, true, context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // its time is over at once
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.interrupted {
					cancel()
				}
				nodes, err := awaitNodes(ctx, fake.NewClientset(test.nodes...))
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("awaitNodes: %d nodes, %v, want %q", len(nodes), err, test.want)
				}
			})
		})
	}
}

func TestCheckProbe(t *testing.T) {
	waiting := func(image, reason string) v1.ContainerStatus {
		return v1.ContainerStatus{Image: image, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason}}}
	}
	for name, test := range map[string]struct {
		status v1.PodStatus
		want   []string // in the error; none: no error yet
	}{
		"a probe that is being set up": {v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{waiting("a:1", "ContainerCreating")}}, nil},
		"a probe that succeeded":       {v1.PodStatus{Phase: v1.PodSucceeded}, nil},
		"an image is missing": {
			v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting("a:1", "ErrImageNeverPull")}},
			[]string{"node n lacks a:1:", "kind load image-archive"},
		},
		"both images are missing": {
			v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{waiting("a:1", "ErrImageNeverPull"), waiting("b:1", "ErrImageNeverPull")}},
			[]string{"node n lacks a:1 and b:1:"},
		},
		"an image does not run": {v1.PodStatus{Phase: v1.PodFailed, Message: "exec format error"}, []string{"exec format error"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkProbe(&v1.Pod{Spec: v1.PodSpec{NodeName: "n"}, Status: test.status})
			if (err != nil) != (len(test.want) > 0) {
				t.Fatalf("error %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}
