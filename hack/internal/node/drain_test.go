package node

import (
	"io"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubectl/pkg/drain"
)

func TestAFailedDrainLeavesTheNodeAsItWas(t *testing.T) {
	for name, cordoned := range map[string]bool{"a node that takes pods": false, "a node that is cordoned": true} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(
				&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: v1.NodeSpec{Unschedulable: cordoned}},
				// Without --force, nothing may delete a pod that no controller makes again.
				&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod"}, Spec: v1.PodSpec{NodeName: "node"}},
			)
			options := drain.Helper{Ctx: t.Context(), Client: client, Out: io.Discard, ErrOut: io.Discard}
			record := &fakeRecord{}
			err := drainNode(t.Context(), record, "node", options, nil, nil)
			if err == nil || strings.Contains(err.Error(), "takes pods again") == cordoned {
				t.Errorf("the error is %v", err)
			}
			node, err := client.CoreV1().Nodes().Get(t.Context(), "node", metav1.GetOptions{})
			if err != nil || node.Spec.Unschedulable != cordoned {
				t.Errorf("unschedulable: %t, want %t (%v)", node.Spec.Unschedulable, cordoned, err)
			}
			if n := len(record.saved); cordoned && n > 0 || !cordoned && (n != 2 || len(record.saved[1]) > 0) {
				t.Errorf("it recorded %v", record.saved)
			}
		})
	}
}
