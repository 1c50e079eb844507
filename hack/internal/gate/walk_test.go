package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/testutil"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func configMap(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": namespace}, "data": data}}
}

// TestOnlyComparedObjectsCount: of two objects, an API server with the gate on refuses the first, and one with
// the gate off drops a field of the second.
func TestOnlyComparedObjectsCount(t *testing.T) {
	probes := []probe{
		{resource: configMaps, namespaced: true, object: *configMap("a", nil)},
		{resource: configMaps, namespaced: true, object: *configMap("b", nil), on: configMap("b", map[string]any{"guarded": "1"}).Object},
	}
	api := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	api.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, configMap("probe", nil), nil
	})
	w := Walker{objects: api, probes: probes, Walk: &Walk{Gate: Gate{Components: []string{"kube-apiserver"}}}}
	if err := w.replayOff(t.Context(), nil); err != nil || w.Walk.Objects["ConfigMap"] != 1 || !slices.Equal(w.Walk.Dropped, []string{"ConfigMap: data.guarded"}) {
		t.Errorf("compared %v, dropped %q, %v", w.Walk.Objects, w.Walk.Dropped, err)
	}
	w.Walk = &Walk{Gate: Gate{Components: []string{"kubelet"}}}
	if err := w.replayOff(t.Context(), nil); err != nil || len(w.Walk.Objects) > 0 || len(w.Walk.Dropped) > 0 {
		t.Errorf("without the gate in the API server: compared %v, dropped %q, %v", w.Walk.Objects, w.Walk.Dropped, err)
	}
}

// TestWhatIsGoneIsFound: of four objects one has lost a field, one by somebody's update, and one was deleted; of five
// containers one stays, one and a sidecar started again, one does so by itself, and one ended.
func TestWhatIsGoneIsFound(t *testing.T) {
	defer func(was time.Duration) { calm = was }(calm)
	calm = 0
	pod := func(container string, restarts int32, ended bool) *v1.Pod {
		status := v1.ContainerStatus{Name: container, RestartCount: restarts, State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}
		if ended {
			status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{}}
		}
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p-" + container, Namespace: namespace}, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{status}}}
	}
	before := map[string]any{"a": "1", "b": "2"}
	all := []stored{
		{probe{resource: configMaps, namespaced: true, object: *configMap("", nil)}, "kept", configMap("kept", before), true},
		{probe{resource: configMaps, namespaced: true, object: *configMap("", nil)}, "cut", configMap("cut", before), false},
		{probe{resource: configMaps, namespaced: true, object: *configMap("", nil)}, "gone", configMap("gone", before), true},
		{probe{resource: configMaps, namespaced: true, object: *configMap("", nil)}, "status", configMap("status", map[string]any{"c": "3"}), false},
	}
	status := configMap("status", nil)
	status.SetResourceVersion("2")
	sidecar := pod("sidecar", 1, false)
	sidecar.Status.InitContainerStatuses, sidecar.Status.ContainerStatuses = sidecar.Status.ContainerStatuses, nil
	w := Walker{
		client:  fake.NewClientset(sidecar, pod("stays", 0, false), pod("again", 1, false), pod("loops", 5, false), pod("ends", 0, true)),
		objects: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), configMap("kept", before), configMap("cut", map[string]any{"a": "1"}), status),
		stored:  all,
		starts:  map[string]int32{"p-stays/stays": 0, "p-sidecar/sidecar": 0, "p-again/again": 0, "p-loops/loops": 3, "p-ends/ends": 0},
	}
	found, err := w.changed(t.Context())
	if err != nil || found.Objects != 4 || found.Updated != 1 || len(found.Refused) != 1 ||
		!slices.Equal(found.Hidden, []string{"ConfigMap: data.b", "ConfigMap: the whole object", "ConfigMap: data.c"}) {
		t.Errorf("meanwhile: %+v, %v", found, err)
	}
	if err := errors.Join(w.back(t.Context(), found), w.restarted(t.Context(), found)); err != nil || !found.Again || !slices.Equal(found.Lost, []string{"ConfigMap: data.b", "ConfigMap: the whole object"}) ||
		found.Unwritten != 3 ||
		!slices.Equal(found.Written, []string{"ConfigMap: data.c"}) || !slices.Equal(found.Restarted, []string{"p-again/again", "p-ends/ends, which ended", "p-sidecar/sidecar"}) {
		t.Errorf("afterwards: %+v, %v", found, err)
	}
	if err := w.there(t.Context(), nil); err != nil || len(w.stored) != 3 || w.stored[2].object.GetResourceVersion() != "2" {
		t.Errorf("there are %v, %v", w.stored, err)
	}
}

// TestAContainerMayTakeTimeToEnd: one that a kubelet is ending still runs for a while.
func TestAContainerMayTakeTimeToEnd(t *testing.T) {
	defer func(was time.Duration) { calm = was }(calm)
	calm = 2 * time.Second
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: namespace}, Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
		{Name: "c", State: v1.ContainerState{Running: &v1.ContainerStateRunning{}}}}}}
	w := Walker{client: fake.NewClientset(pod), starts: map[string]int32{"p/c": 0}}
	time.AfterFunc(100*time.Millisecond, func() {
		ended := pod.DeepCopy()
		ended.Status.ContainerStatuses[0].RestartCount = 1
		if _, err := w.client.CoreV1().Pods(namespace).UpdateStatus(t.Context(), ended, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})
	found := &Stored{}
	if err := w.restarted(t.Context(), found); err != nil || !slices.Equal(found.Restarted, []string{"p/c"}) {
		t.Errorf("restarted %q, %v", found.Restarted, err)
	}
}

// TestASpecThatHangsDoesNotEndTheWalk, and specs that need what is not here do not run.
func TestASpecThatHangsDoesNotEndTheWalk(t *testing.T) {
	c := testutil.NewCommands(t)
	c.Script("ginkgo", `for arg; do case $arg in --report-dir=*) dir=${arg#*=} ;; esac; done
echo 'Will run 2 of 9 specs'
echo '<testsuites><testsuite><testcase name="[It] hangs"><failure>timed out</failure></testcase></testsuite></testsuites>' >$dir/junit_01.xml; exit 1`)
	w := Walker{client: fake.NewClientset(), Walk: &Walk{}, Specs: conformance.Options{
		Dir: filepath.Join(c.Dir, "results"), Specs: &build.Specs{Dir: filepath.Join(c.Dir, "bin")}, Runs: []string{conformance.Parallel},
	}}
	var rows []conformance.Row
	err := w.specs(t.Context(), &rows, "again")
	if err != nil || len(rows) != 1 || rows[0].State != conformance.Failed || len(w.Walk.Ended) != 1 || !strings.Contains(w.Walk.Ended[0], "1 of 2 specs ran") {
		t.Errorf("rows %v, ended %q, %v", rows, w.Walk.Ended, err)
	}
	if call := c.Calls("ginkgo")[0]; !strings.Contains(call, `--skip=\[Feature:Windows\]|\(ntfs\) --skip=`) || !strings.Contains(call, `--skip=\[Driver:  --`) {
		t.Errorf("specs that cannot run are not skipped: %s", call)
	}
	if files, err := filepath.Glob(filepath.Join(w.Specs.Dir, "again", "junit_01.xml")); err != nil || len(files) != 1 {
		t.Errorf("results %v, %v", files, err)
	}
}

func TestAWalkTurnsTheGateOffInAllThatKnowIt(t *testing.T) {
	w := Walker{Walk: &Walk{Gate: Gate{Components: []string{"kube-scheduler", "kubelet", "kube-apiserver", "kube-proxy"}}}, nodes: []cluster.Node{{Name: "control-plane"}, {Name: "worker"}}}
	for i, want := range [][]string{{"kube-apiserver", "kube-scheduler"}, {"kubelet"}} {
		if got := w.switchedOn(w.nodes[i]); !slices.Equal(got, want) {
			t.Errorf("of node %s: %q, want %q", w.nodes[i].Name, got, want)
		}
	}
}

// TestCostsAreOfPodsThatStarted, whatever other pods wait for.
func TestCostsAreOfPodsThatStarted(t *testing.T) {
	defer func(was time.Duration) { settle = was }(settle)
	settle = time.Second
	requests, phase := 0, v1.PodRunning
	var created string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			created = string(body)
			w.WriteHeader(http.StatusCreated)
			w.Write(body) //nolint:errcheck // a test
		case r.Method == http.MethodGet:
			pods := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
			for name, phase := range map[string]v1.PodPhase{"untouched-0": v1.PodPending, "cost-false-0-0": phase} {
				pods.Items = append(pods.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.PodStatus{Phase: phase}})
			}
			json.NewEncoder(w).Encode(pods) //nolint:errcheck // a test
		default:
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1"}`)
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	pod := probe{resource: v1.SchemeGroupVersion.WithResource("pods"), namespaced: true,
		object: unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "an-image", "guarded": true}, map[string]any{"name": "d", "image": "another"}}}}}}
	read := func(_ context.Context, _ *cluster.Cluster, _ kubernetes.Interface, node, component string) ([]byte, error) {
		if want := map[bool]string{true: "worker", false: "control-plane"}[component == "kubelet"]; node != want {
			t.Errorf("metrics of %s of node %s", component, node)
		}
		requests += 20
		return fmt.Appendf(nil, "# TYPE apiserver_request_total counter\napiserver_request_total %d\n# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 1048576\n", requests), nil
	}
	w := Walker{Walk: &Walk{}, read: read, nodes: []cluster.Node{{Name: "control-plane"}, {Name: "worker"}}, client: kubernetes.NewForConfigOrDie(config), objects: dynamic.NewForConfigOrDie(config)}
	w.stored = []stored{{probe: pod}}
	if err := w.measure(t.Context(), false, nil); err != nil || len(w.Walk.Costs) == 0 || len(w.off) == 0 || w.Walk.Metrics != nil {
		t.Fatalf("costs %v, %v", w.Walk.Costs, err)
	}
	// A scrape is of four components, one after the other: 20 to 140 more by the next one, of 10 pods.
	if c := w.Walk.Costs[0]; c.What != "requests to the API server per pod" || len(c.Off) != rounds || c.Off[0] < 2 || c.Off[0] > 14 {
		t.Errorf("got %+v", c)
	}
	for _, component := range node.Components {
		if i := slices.IndexFunc(w.Walk.Costs, func(c Cost) bool { return c.What == "resident memory of "+component+", in MiB" }); i < 0 || w.Walk.Costs[i].Off[0] != 1 {
			t.Errorf("%s: got %+v", component, w.Walk.Costs)
		}
	}
	if !strings.Contains(created, "guarded") {
		t.Errorf("pods were %s", created)
	}
	// Those that are refused with the gate off are left out, also with it on.
	w.Walk = &Walk{Refused: []string{"Pod: no such field"}}
	for _, on := range []bool{false, true} {
		if err := w.measure(t.Context(), on, nil); err != nil || len(w.Walk.Costs) == 0 ||
			strings.Contains(created, "guarded") || !strings.Contains(created, "an-image") || strings.Contains(created, "another") {
			t.Errorf("with pods that the API server refuses: costs %v, %v, of %s", w.Walk.Costs, err, created)
		}
	}
	phase = v1.PodFailed // a kubelet takes no more, for example
	if err := w.measure(t.Context(), false, nil); err != nil || w.Walk.Costs != nil {
		t.Errorf("of pods that failed: %v, %v", w.Walk.Costs, err)
	}
	phase = v1.PodPending
	if err := w.measure(t.Context(), false, nil); err != nil || w.Walk.Costs != nil {
		t.Errorf("of pods that did not start: %v, %v", w.Walk.Costs, err)
	}
}

// TestAPartThatFailsEndsThoseThatNeedIt, and no others, but for an interruption.
func TestAPartThatFailsEndsThoseThatNeedIt(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		stored    []stored
		interrupt bool
		ran       string
	}{
		"objects are stored":     {[]stored{}, false, "first fails alone fails too last"},
		"no objects are stored":  {nil, false, "first fails"},
		"Ctrl-C while one fails": {[]stored{}, true, "first fails"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			var ran []string
			saved := 0
			does := func(name string, err error, alone bool) part {
				return part{name, func(context.Context, *progress.Step) error {
					if ran = append(ran, name); test.interrupt && err != nil {
						cancel()
					}
					return err
				}, alone}
			}
			w := Walker{Walk: &Walk{}, stored: test.stored, client: fake.NewClientset(), Save: func() error { saved++; return nil }}
			err := w.runParts(ctx, []part{
				does("first", nil, false), does("fails", broken, false), does("needs it", nil, false),
				does("alone", nil, true), does("fails too", broken, false), does("last", nil, true),
			})
			if !errors.Is(err, broken) || strings.Join(ran, " ") != test.ran || saved != len(ran) {
				t.Errorf("%q ran and %d were saved, %v", ran, saved, err)
			}
			if want := strings.Count(test.ran, "fails"); strings.Count(err.Error(), "broken") != want {
				t.Errorf("the error %q does not have all %d", err, want)
			}
		})
	}
}

// TestTwoServersThatDisagree: one shows a field that the other one hides, and drops when it is the creator. What they
// stored outside of the namespace is deleted at the end.
func TestTwoServersThatDisagree(t *testing.T) {
	classes := schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}
	kinds := map[schema.GroupVersionResource]string{configMaps: "ConfigMapList", classes: "PriorityClassList"}
	class := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": map[string]any{"name": "c"}, "value": int64(1)}}
	on := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	off := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	off.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if create, ok := action.(clienttesting.CreateActionImpl); ok {
			unstructured.RemoveNestedField(create.Object.(*unstructured.Unstructured).Object, "data", "guarded")
		}
		object, err := on.Invokes(action, nil)
		if u, ok := object.(*unstructured.Unstructured); ok {
			object = u.DeepCopy()
			unstructured.RemoveNestedField(object.(*unstructured.Unstructured).Object, "data", "guarded")
		}
		return true, object, err
	})
	quota := configMap("q", nil)
	w := Walker{Walk: &Walk{}, client: fake.NewClientset(&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}), objects: on, probes: []probe{
		{resource: configMaps, namespaced: true, object: *configMap("m", map[string]any{"guarded": "1"}), on: map[string]any{}},
		{resource: classes, object: *class, on: map[string]any{}},
		{resource: classes, object: *class}, // refused with the gate on
		{resource: v1.SchemeGroupVersion.WithResource("resourcequotas"), namespaced: true, object: *quota, on: map[string]any{}},
	}}
	found, err := w.inTurn(t.Context(), off, nil)
	if err != nil || found.Objects != 4 || len(found.Lost) > 0 || len(found.Refused) > 0 || !slices.Equal(found.Hidden, []string{"ConfigMap: data.guarded"}) {
		t.Errorf("found %+v, %v", found, err)
	}
	// What one of them refuses is said once, whatever the object's name. Another error ends it.
	refusing := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	refusing.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "servers-1", errors.New("not with this gate"))
	})
	other := Walker{Walk: &Walk{}, objects: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds), probes: w.probes[:1]}
	want := []string{`ConfigMap: configmaps "NAME" not found`, `ConfigMap, created: forbidden: not with this gate`}
	if found, err := other.inTurn(t.Context(), refusing, nil); err != nil || found.Objects != 1 || !slices.Equal(found.Refused, want) {
		t.Errorf("of refusals: found %+v, %v", found, err)
	}
	refusing.PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTooManyRequestsError("later")
	})
	other.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	if _, err := other.inTurn(t.Context(), refusing, nil); !apierrors.IsTooManyRequests(err) {
		t.Errorf("of a busy API server: %v", err)
	}
	listed := func() int {
		list, err := on.Resource(classes).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	before := listed()
	if err := w.restore(t.Context()); err != nil || before != 2 || listed() > 0 {
		t.Errorf("%d classes before, %d afterwards, %v", before, listed(), err)
	}
	if _, err := w.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{}); err == nil {
		t.Error("the namespace is there")
	}
	if err := w.restore(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// TestAnObjectMayNeedItsName: an API server refuses it under another one.
func TestAnObjectMayNeedItsName(t *testing.T) {
	api := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
	api.PrependReactor("create", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if object := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured); object.GetName() != "its-own" {
			return true, nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, object.GetName(), nil)
		}
		return true, configMap("its-own", nil), nil
	})
	p := probe{resource: configMaps, namespaced: true, object: *configMap("its-own", nil)}
	if stored, refused, err := p.dryRun(t.Context(), api); stored == nil || refused != "" || err != nil {
		t.Errorf("stored %v, refused %q, %v", stored, refused, err)
	}
	p.object = *configMap("another", nil)
	if stored, refused, err := p.dryRun(t.Context(), api); stored != nil || !strings.Contains(refused, `"probe" is invalid`) || err != nil {
		t.Errorf("stored %v, refused %q, %v", stored, refused, err)
	}
}
