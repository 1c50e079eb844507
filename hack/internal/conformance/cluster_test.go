package conformance

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	fakerest "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/testutil"
)

func node(name string, ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Message: "kubelet stopped"}}},
	}
}

func TestCheckRefusesAClusterThatCannotShowConformance(t *testing.T) {
	ready, taint := corev1.ConditionTrue, corev1.Taint{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}
	cordoned := node("c", corev1.ConditionFalse, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	cordoned.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		version   string
		forbidden bool
		nodes     []runtime.Object
		want      string
	}{
		"two workers":               {"v1.33.13+podenv.24", false, []runtime.Object{node("control-plane", ready, taint), node("a", ready), node("b", ready)}, ""},
		"a taint that only prefers": {"v1.33.1", false, []runtime.Object{node("a", ready), node("b", ready, corev1.Taint{Key: "a", Effect: corev1.TaintEffectPreferNoSchedule})}, ""},
		"another minor":             {"v1.330.1", false, nil, "the cluster runs v1.330.1"},
		"no right to create":        {"v1.33.1", true, nil, "bound to the ClusterRole cluster-admin"},
		"one node":                  {"v1.33.1", false, []runtime.Object{node("a", ready)}, "can run on 1 of the"},
		"a taint":                   {"v1.33.1", false, []runtime.Object{node("a", ready), node("b", ready, taint)}, "b has the taint a=b:NoSchedule"},
		"a node that is not ready":  {"v1.33.1", false, []runtime.Object{node("a", ready), node("b", ready), node("c", corev1.ConditionFalse)}, "node c is not ready: kubelet stopped"},
		"one that is cordoned, too": {"v1.33.1", false, []runtime.Object{node("a", ready), node("b", ready), cordoned}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			testutil.CheckError(t, o.Check(t.Context(), clientOf(tc.version, "uid", !tc.forbidden, tc.nodes...), "v1.33"), tc.want)
		})
	}
}

const (
	gateOn  = "kubernetes_feature_enabled{name=\"A\",stage=\"BETA\"} 1\n"
	gateOff = "kubernetes_feature_enabled{name=\"A\",stage=\"BETA\"} 0\n"
)

// clientOf returns a client of a cluster with nodes, which the UID of kube-system identifies.
func clientOf(apiServer string, uid types.UID, allowed bool, nodes ...runtime.Object) kubernetes.Interface {
	client := fake.NewClientset(append(nodes, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uid}})...)
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: apiServer}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authv1.SelfSubjectAccessReview{Status: authv1.SubjectAccessReviewStatus{Allowed: allowed}}, nil
	})
	return serving{client, http.StatusOK, gateOn, gateOn}
}

// serving is a client of an API server that answers requests for metrics. That of a fake has none.
type serving struct {
	kubernetes.Interface
	code             int
	metrics, kubelet string
}

type core struct {
	typedv1.CoreV1Interface
	serving
}

func (s serving) CoreV1() typedv1.CoreV1Interface { return core{s.Interface.CoreV1(), s} }

func (c core) RESTClient() rest.Interface {
	return &fakerest.RESTClient{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		Client: fakerest.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
			text := c.metrics
			if strings.HasPrefix(r.URL.Path, "/api/v1/nodes/b/") {
				text = c.kubelet
			}
			return &http.Response{StatusCode: c.code, Body: io.NopCloser(strings.NewReader(text))}, nil
		}),
	}
}

// What has passed on one cluster must not count for another.
func TestCheckTellsClustersApart(t *testing.T) {
	kubelet := func(name, version string) *corev1.Node {
		n := node(name, corev1.ConditionTrue)
		n.Status.NodeInfo.KubeletVersion = version
		return n
	}
	metrics := func(code int, text, ofKubelet string) kubernetes.Interface {
		client := clientOf("v1.33.13", "1", true, kubelet("a", "v1.33.13"), kubelet("b", "v1.33.13")).(serving)
		client.code, client.metrics, client.kubelet = code, text, ofKubelet
		return client
	}
	seen := map[string]string{}
	for name, client := range map[string]kubernetes.Interface{
		"a cluster":           clientOf("v1.33.13", "1", true, kubelet("a", "v1.33.13"), kubelet("b", "v1.33.13")),
		"of another build":    clientOf("v1.33.13+podenv.24", "1", true, kubelet("a", "v1.33.13"), kubelet("b", "v1.33.13")),
		"with other kubelets": clientOf("v1.33.13", "1", true, kubelet("a", "v1.33.13"), kubelet("b", "v1.33.13+podenv.24")),
		"with a gate off":     metrics(http.StatusOK, gateOff, gateOn),
		"in a kubelet":        metrics(http.StatusOK, gateOn, gateOff),
		"of unknown gates":    metrics(http.StatusForbidden, "", ""),
		"another one":         clientOf("v1.33.13", "2", true, kubelet("a", "v1.33.13"), kubelet("b", "v1.33.13")),
	} {
		var o Options
		if err := o.Check(t.Context(), client, "v1.33"); err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[o.Cluster]; ok {
			t.Errorf("%s and %s are both %s", name, other, o.Cluster)
		}
		seen[o.Cluster] = name
	}
	var o Options
	testutil.CheckError(t, o.Check(t.Context(), metrics(http.StatusServiceUnavailable, "", ""), "v1.33"), "which gates are on, from /metrics")
}

// Upstream's runner waits in vain for a tainted node unless it is told that pods need not run there.
func TestTaintedNodesDoNotHoldUpTheSpecs(t *testing.T) {
	ready, taint := corev1.ConditionTrue, corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	o := Options{Specs: &build.Specs{}}
	if err := o.Check(t.Context(), clientOf("v1.33.1", "uid", true, node("a", ready), node("b", ready), node("c", ready, taint)), "v1.33"); err != nil {
		t.Fatal(err)
	}
	if args := o.arguments(Parallel, "", &results{}); !slices.Contains(args, "--non-blocking-taints=gpu,node-role.kubernetes.io/control-plane") {
		t.Errorf("arguments %q", args)
	}
}

func TestOnlyNamespacesThatTheSpecsMadeAreDeleted(t *testing.T) {
	client := fake.NewClientset()
	create := func(name string, labels map[string]string) {
		t.Helper()
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run := map[string]string{"e2e-run": "uid"}
	create("old", run)
	clean, err := newNamespaces(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	create("made", run)
	create("user", nil)
	if err := clean(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	left, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ns := range left.Items {
		names = append(names, ns.Name)
	}
	if got := strings.Join(names, " "); got != "old user" {
		t.Errorf("left are %s", got)
	}
}

// A namespace that is left is an error, unless it goes by itself.
func TestANamespaceThatCannotBeDeletedIsAnError(t *testing.T) {
	client := fake.NewClientset()
	clean, err := newNamespaces(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	for name, gone := range map[string]*metav1.Time{"made": nil, "terminating": {Time: time.Now()}} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"e2e-run": "uid"}, DeletionTimestamp: gone}}
		if err := client.Tracker().Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	client.PrependReactor("delete", "namespaces", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("cannot delete " + a.(clienttesting.DeleteAction).GetName())
	})
	err = clean(t.Context())
	testutil.CheckError(t, err, "cannot delete made")
	if err != nil && strings.Contains(err.Error(), "terminating") {
		t.Error(err)
	}
}
