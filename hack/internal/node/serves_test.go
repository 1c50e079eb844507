package node

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAKubeletServesOnceItHasReportedItself(t *testing.T) {
	restarted := time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	reported := func(at time.Time, ready corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "podenv-worker"},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: ready, Message: "the CNI says so", LastHeartbeatTime: metav1.NewTime(at)},
			}},
		}
	}
	tests := map[string]struct {
		answers bool // the kubelet
		node    corev1.Node
		waits   string
	}{
		"one that has reported the node as ready":      {true, reported(restarted.Add(time.Second), corev1.ConditionTrue), ""},
		"one that reported in the second of its start": {true, reported(restarted, corev1.ConditionTrue), ""},
		"one before which another reported":            {true, reported(restarted.Add(-time.Second), corev1.ConditionTrue), "the kubelet has not reported since its restart: its last heartbeat is of 01:29:59"},
		"one whose node is not ready":                  {true, reported(restarted.Add(time.Second), corev1.ConditionFalse), "the CNI says so"},
		"one that does not answer":                     {false, reported(restarted.Add(time.Second), corev1.ConditionTrue), "is not healthy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/api/v1/nodes/podenv-worker":
					w.Header().Set("Content-Type", "application/json")
					json.NewEncoder(w).Encode(test.node) //nolint:errcheck // the client notices
				case !test.answers:
					http.NotFound(w, r)
				}
			})
			k := &kubelet{target: &target{node: "podenv-worker", name: "kubelet", client: client}, restartedAt: restarted}
			err := k.checkReady(t.Context())
			if (err == nil) != (test.waits == "") || err != nil && !strings.Contains(err.Error(), test.waits) {
				t.Errorf("error %v, want %q", err, test.waits)
			}
		})
	}
}

func TestRolledOut(t *testing.T) {
	whole := appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}
	tests := map[string]struct {
		change func(*appsv1.DaemonSetStatus)
		done   bool
	}{
		"all pods are new and run":    {func(*appsv1.DaemonSetStatus) {}, true},
		"the change was not seen yet": {func(s *appsv1.DaemonSetStatus) { s.ObservedGeneration = 1 }, false},
		"a pod is old":                {func(s *appsv1.DaemonSetStatus) { s.UpdatedNumberScheduled = 1 }, false},
		"a pod does not run":          {func(s *appsv1.DaemonSetStatus) { s.NumberAvailable = 1 }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy", Generation: 2}, Status: whole}
			test.change(&set.Status)
			if err := checkRolledOut(set); (err == nil) != test.done {
				t.Errorf("rolledOut: %v", err)
			}
		})
	}
}
