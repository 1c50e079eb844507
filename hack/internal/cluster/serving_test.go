package cluster

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/poll"
)

// apiServer answers each path with a value, as JSON unless it is a string.
type apiServer map[string]any

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch answer := a[r.URL.Path].(type) {
	case nil:
		http.NotFound(w, r)
	case string:
		w.Write([]byte(answer)) //nolint:errcheck // the client notices
	default:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client notices
	}
}

const (
	gateOn  = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1` + "\n"
	gateOff = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 0` + "\n"
)

func node(name string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: ready, Message: "the CNI says so"},
		}},
	}
}

func pod(name string, ready corev1.ConditionStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// servingCluster returns the API of a cluster that serves: a control plane and a worker with
// EnvFiles on.
func servingCluster() apiServer {
	const system = "/namespaces/kube-system/"
	return apiServer{
		"/readyz": "ok",
		"/api/v1/nodes": corev1.NodeList{Items: []corev1.Node{
			node("podenv-control-plane", corev1.ConditionTrue), node("podenv-worker", corev1.ConditionTrue),
		}},
		"/apis/apps/v1" + system + "daemonsets": appsv1.DaemonSetList{Items: []appsv1.DaemonSet{{
			ObjectMeta: metav1.ObjectMeta{Name: "kube-proxy"},
			Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 2},
		}}},
		"/apis/apps/v1" + system + "deployments": appsv1.DeploymentList{Items: []appsv1.Deployment{{
			ObjectMeta: metav1.ObjectMeta{Name: "coredns"},
			Status:     appsv1.DeploymentStatus{ReadyReplicas: 1},
		}}},
		"/api/v1" + system + "pods":                          corev1.PodList{Items: []corev1.Pod{pod("etcd", corev1.ConditionTrue)}},
		"/api/v1/namespaces/default/serviceaccounts/default": corev1.ServiceAccount{},
		"/api/v1" + system + "pods/kube-proxy/log":           "starting\nunable to create watcher: too many open files\n",
		"/metrics": gateOn,
		"/api/v1/nodes/podenv-control-plane/proxy/metrics": gateOn,
		"/api/v1/nodes/podenv-worker/proxy/metrics":        gateOn,
	}
}

func TestServing(t *testing.T) {
	const system = "/namespaces/kube-system/"
	unscheduled := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "coredns"}, Status: corev1.PodStatus{Phase: corev1.PodPending,
		Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	kubeProxy := func(ready corev1.ConditionStatus, state corev1.ContainerState) corev1.Pod {
		p := pod("kube-proxy", ready)
		p.Namespace, p.Spec.NodeName = metav1.NamespaceSystem, "podenv-worker"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "kube-proxy", State: state, LastTerminationState: ended, RestartCount: 3}}
		return p
	}
	crashing := kubeProxy(corev1.ConditionFalse, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}})
	restarted := func(ago time.Duration) corev1.Pod {
		return kubeProxy(corev1.ConditionTrue, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-ago))}})
	}
	leaving := pod("leaving", corev1.ConditionFalse)
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	tests := map[string]struct {
		path   string
		answer any
		waits  string
		fatal  bool
	}{
		"all is ready": {path: "/", answer: ""},
		"an API server that is not ready is waited for": {path: "/readyz", waits: "the API server is not ready"},
		"a node that is not ready is waited for": {
			path:   "/api/v1/nodes",
			answer: corev1.NodeList{Items: []corev1.Node{node("podenv-control-plane", corev1.ConditionTrue), node("podenv-worker", corev1.ConditionUnknown)}},
			waits:  "node podenv-worker is not ready: the CNI says so",
		},
		"a node that has not reported is waited for": {
			path:   "/api/v1/nodes",
			answer: corev1.NodeList{Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "podenv-control-plane"}}}},
			waits:  "it has not reported yet",
		},
		"a node that has not joined is waited for": {
			path:   "/api/v1/nodes",
			answer: corev1.NodeList{Items: []corev1.Node{node("podenv-control-plane", corev1.ConditionTrue)}},
			waits:  "1 of 2 nodes have joined",
		},
		"a daemon set without pods is waited for": {
			path:   "/apis/apps/v1" + system + "daemonsets",
			answer: appsv1.DaemonSetList{Items: []appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Name: "routes"}}}},
			waits:  "daemon set routes",
		},
		"a daemon set that lacks a pod is waited for": {
			path: "/apis/apps/v1" + system + "daemonsets",
			answer: appsv1.DaemonSetList{Items: []appsv1.DaemonSet{{
				ObjectMeta: metav1.ObjectMeta{Name: "routes"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, NumberReady: 1},
			}}},
			waits: "daemon set routes: 1 of 2",
		},
		"cluster DNS that does not exist is waited for": {
			path: "/apis/apps/v1" + system + "deployments", answer: appsv1.DeploymentList{}, waits: "cluster DNS",
		},
		"cluster DNS without a ready pod is waited for": {
			path:   "/apis/apps/v1" + system + "deployments",
			answer: appsv1.DeploymentList{Items: []appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Name: "coredns"}}}},
			waits:  "deployment coredns: 0 of 1",
		},
		"a pod that is not ready is waited for": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{pod("etcd", corev1.ConditionFalse)}},
			waits:  "pod etcd is not ready",
		},
		"a pod that cannot be scheduled is shown with the reason": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{unscheduled}},
			waits:  "pod coredns is not ready: it is Pending: 0/1 nodes are available",
		},
		"a container that fails is shown with its log and the remedy": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{crashing}},
			waits: "pod kube-proxy on node podenv-worker is not ready: container kube-proxy: CrashLoopBackOff: back-off 10s; it ended with exit status 1 (Error) and was restarted 3 times\n" +
				"last lines of its log:\n  starting\n  unable to create watcher: too many open files\nraise the kernel's limits",
		},
		"a container that has just been restarted is waited for, though its pod is ready": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{restarted(time.Second)}},
			waits:  "container kube-proxy: it ended with exit status 1",
		},
		"a container that runs since its restart is not waited for": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{restarted(time.Minute)}},
		},
		"a pod that is being deleted is not waited for": {
			path:   "/api/v1" + system + "pods",
			answer: corev1.PodList{Items: []corev1.Pod{leaving, pod("etcd", corev1.ConditionTrue)}},
		},
		"the default service account is waited for": {
			path: "/api/v1/namespaces/default/serviceaccounts/default", waits: "the default service account",
		},
		"a kubelet that does not answer is waited for": {
			path: "/api/v1/nodes/podenv-worker/proxy/metrics", waits: "the metrics of the kubelet of podenv-worker",
		},
		"an API server with a gate off is not waited for": {
			path: "/metrics", answer: gateOff, waits: "kube-apiserver runs with EnvFiles=false", fatal: true,
		},
		"a kubelet with a gate off is not waited for": {
			path: "/api/v1/nodes/podenv-worker/proxy/metrics", answer: gateOff,
			waits: "the kubelet of podenv-worker runs with EnvFiles=false", fatal: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			api := servingCluster()
			api[test.path] = test.answer
			server := httptest.NewServer(api)
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
			if err != nil {
				t.Fatal(err)
			}
			s := &serving{client: client, nodes: 2, gates: map[string]bool{"EnvFiles": true}}
			err = s.check(t.Context())
			if (err == nil) != (test.waits == "") || err != nil && !strings.Contains(err.Error(), test.waits) {
				t.Errorf("error %v, want %q", err, test.waits)
			}
			if _, isFatal := err.(poll.Fatal); isFatal != test.fatal {
				t.Errorf("error %v is fatal: %t", err, isFatal)
			}
		})
	}
}
