package cluster

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAKubeletServesOnceItHasReportedItself(t *testing.T) {
	turned := time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	reported := func(at time.Time, ready corev1.ConditionStatus) corev1.Node {
		n := node("podenv-worker", ready)
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(at)
		return n
	}
	tests := map[string]struct {
		healthz any
		node    corev1.Node
		waits   string
	}{
		"one that has reported the node as ready":      {"ok", reported(turned.Add(time.Second), corev1.ConditionTrue), ""},
		"one that reported in the second of its start": {"ok", reported(turned, corev1.ConditionTrue), ""},
		"one before which another reported":            {"ok", reported(turned.Add(-time.Second), corev1.ConditionTrue), "last heartbeat is of"},
		"one whose node is not ready":                  {"ok", reported(turned.Add(time.Second), corev1.ConditionFalse), "the CNI says so"},
		"one that does not answer":                     {nil, reported(turned.Add(time.Second), corev1.ConditionTrue), "to be healthy"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(apiServer{
				"/api/v1/nodes/podenv-worker":               test.node,
				"/api/v1/nodes/podenv-worker/proxy/healthz": test.healthz,
			})
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			s := &kubeletSwap{turned: turned}
			err = s.ready(t.Context(), client, Node{Name: "podenv-worker"})
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
			if err := rolledOut(set); (err == nil) != test.done {
				t.Errorf("rolledOut: %v", err)
			}
		})
	}
}
