package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/progress"
)

// fakeComponent runs a build and records the calls of its methods.
type fakeComponent struct {
	runs, old, new string
	starting       int // so many times it does not run yet
	done           []string
	failAt         string
	fail           error
	stop           func() // called where it fails
	badOld         bool
	each           func(call string) // called with each call that changes something, if not nil
}

func (f *fakeComponent) do(what string) error {
	f.done = append(f.done, what)
	if f.each != nil {
		f.each(what)
	}
	if what == f.failAt {
		if f.stop != nil {
			f.stop()
		}
		return f.fail
	}
	return nil
}

func (f *fakeComponent) state(context.Context) (cluster.State, error) {
	if f.starting > 0 {
		f.starting--
		return cluster.State{}, nil
	}
	return cluster.State{SHA256: f.runs, Version: "v1.33.13+podenv.24", Gates: map[string]bool{"EnvFiles": true}}, nil
}

func (f *fakeComponent) stage(_ context.Context, ch change, _ cluster.State) error {
	if ch.original {
		return f.do("stage-original")
	}
	return f.do("stage")
}
func (f *fakeComponent) cleanUp(context.Context) error { return f.do("clean") }
func (f *fakeComponent) log(context.Context) string    { return "panic: the new kubelet" }
func (f *fakeComponent) apply(context.Context) error   { f.runs = f.new; return f.do("apply") }
func (f *fakeComponent) revert(context.Context) error  { f.runs = f.old; return f.do("revert") }
func (f *fakeComponent) files() []string               { return nil }

func (f *fakeComponent) waitServing(ctx context.Context, want cluster.State) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f.runs != want.SHA256 || f.badOld && want.SHA256 == f.old {
		return fmt.Errorf("%s runs, not %s", f.runs, want.SHA256)
	}
	return f.do("serves-" + want.SHA256)
}

// fakeRecord keeps every record of a cluster that was saved.
type fakeRecord struct{ saved []cluster.Changes }

func (*fakeRecord) Name() string { return "podenv" }

func (r *fakeRecord) SaveChanges(_ context.Context, changes cluster.Changes) error {
	r.saved = append(r.saved, changes)
	return nil
}

// newClient returns a client of an API server with the handler.
func newClient(t *testing.T, handler http.HandlerFunc) kubernetes.Interface {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var (
	originalState = cluster.State{SHA256: "old", Version: "v1.33.13+podenv.24", Gates: map[string]bool{"EnvFiles": true}}
	// changedRecord is the record of a node that does not run its original build.
	changedRecord = cluster.Changes(nil).With("podenv-worker", "kubelet", &cluster.ComponentChange{Original: originalState, Gates: originalState.Gates})
)

// swapToNew plans a swap to the build new, which knows no gate.
func swapToNew(_ context.Context, i *instance) error {
	i.to, i.binary, i.gates = cluster.State{SHA256: "new", Version: "v1.32.13"}, "file", map[string]bool{}
	return nil
}

func noChange(_ context.Context, i *instance) error { i.to = i.from; return nil }

// TestTheOriginalIsWhatRuns plans changes of a component that the kubelet is starting again.
func TestTheOriginalIsWhatRuns(t *testing.T) {
	component := &fakeComponent{runs: "old", new: "new", starting: 2}
	i := &instance{component: component, target: &target{node: "podenv-control-plane", name: "kube-apiserver"}}
	o := &operation{component: "kube-apiserver"}
	if err := o.plan(t.Context(), i, swapToNew); err != nil || i.recorded.Original.SHA256 != "old" {
		t.Errorf("undo would restore %+v (%v)", i.recorded.Original, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	component.starting = 1000
	if err := o.plan(ctx, i, swapToNew); err == nil {
		t.Errorf("a component that does not run is changed: %+v", i.recorded)
	}
	o.before = cluster.Changes(nil).With("podenv-control-plane", "kube-apiserver", &cluster.ComponentChange{Original: originalState, Gates: originalState.Gates})
	if err := o.plan(t.Context(), i, swapToNew); err != nil || i.recorded.Original.SHA256 != "old" {
		t.Errorf("one that was changed before is not changed again: %+v (%v)", i.recorded, err)
	}
}

func TestAnOperationIsMadeOrTakenBack(t *testing.T) {
	broken := errors.New("it crashes")
	tests := map[string]struct {
		component fakeComponent
		before    cluster.Changes
		plan      plan
		cancelled bool
		did       string
		says      []string
		recorded  bool // at the end
	}{
		"a node that is as wanted is left alone": {plan: noChange},
		"a gate that is asked for but unknown is recorded": {
			plan: func(_ context.Context, i *instance) error {
				i.to, i.wanted = i.from, map[string]bool{"EnvFiles": true, "Other": true}
				return nil
			},
			did: "stage apply serves-old clean", recorded: true,
		},
		"a component that does not say what it should is restarted": {
			plan: func(_ context.Context, i *instance) error {
				i.to = i.from
				i.to.Version = "v1.33.13+podenv.25"
				return nil
			},
			did: "stage apply serves-old clean", recorded: true,
		},
		"a swap is made and recorded": {
			plan: swapToNew, did: "stage apply serves-new clean", recorded: true,
		},
		"a restart is made and not recorded": {
			plan: func(_ context.Context, i *instance) error { i.to, i.restart = i.from, true; return nil },
			did:  "stage apply serves-old clean",
		},
		"a build that does not serve is taken back, with its log": {
			component: fakeComponent{failAt: "serves-new", fail: broken}, plan: swapToNew,
			did:  "stage apply serves-new revert serves-old clean",
			says: []string{"it crashes", "last lines of its log on podenv-worker:\n  panic: the new kubelet", "the old build is back", "fix the new one and try again"},
		},
		"an interrupted swap is taken back": {
			component: fakeComponent{failAt: "apply", fail: context.Canceled}, plan: swapToNew, cancelled: true,
			did: "stage apply revert serves-old clean", says: []string{"context canceled", "the old build is back"},
		},
		"a build that does not reach the node changes nothing": {
			component: fakeComponent{failAt: "stage", fail: broken}, plan: swapToNew,
			did: "stage clean", says: []string{"it crashes"},
		},
		"a build that does not come back either stays recorded": {
			component: fakeComponent{failAt: "serves-new", fail: broken, badOld: true}, plan: swapToNew,
			did: "stage apply serves-new revert", says: []string{"could not be restored", "podenv up --recreate"}, recorded: true,
		},
		"the original, swapped to again, is put back as undo does it": {
			component: fakeComponent{runs: "new", old: "new", new: "old"}, before: changedRecord,
			plan: func(_ context.Context, i *instance) error { i.to, i.binary = originalState, "file"; return nil },
			did:  "stage-original apply serves-old clean",
		},
		"an undo is forgotten once the original serves": {
			component: fakeComponent{runs: "new", old: "new", new: "old"}, before: changedRecord,
			plan: func(_ context.Context, i *instance) error {
				i.to, i.original = i.recorded.Original, true
				return nil
			},
			did: "stage-original apply serves-old clean",
		},
		"an undo to an original that does not serve is taken back": {
			component: fakeComponent{runs: "new", old: "new", new: "old", failAt: "serves-old", fail: broken}, before: changedRecord,
			plan: func(_ context.Context, i *instance) error {
				i.to, i.original = i.recorded.Original, true
				return nil
			},
			did: "stage-original apply serves-old revert serves-new clean", says: []string{"it crashes"}, recorded: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f, record := test.component, &fakeRecord{}
			if f.runs == "" {
				f.runs, f.old, f.new = "old", "old", "new"
			}
			if test.cancelled {
				f.stop = cancel
			}
			o := &operation{cluster: record, component: "kubelet", before: test.before, steps: new(steps)}
			client := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, buildInfo+gateOn) //nolint:errcheck // the client notices
			})
			i := &instance{component: &f, target: &target{node: "podenv-worker", name: "kubelet", client: client}}
			if err := o.plan(ctx, i, test.plan); err != nil {
				t.Fatal(err)
			}
			if !i.differs() || i.to.SHA256 == "old" && f.new == "new" {
				f.new = f.old // the change keeps the build
			}
			o.instances = []*instance{i}
			err := o.run(ctx)
			if (err == nil) != (test.says == nil) {
				t.Fatalf("error %v", err)
			}
			for _, want := range test.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error does not have %q:\n%v", want, err)
				}
			}
			if got := strings.Join(f.done, " "); got != test.did {
				t.Errorf("did %q, want %q", got, test.did)
			}
			changes := test.before
			if len(record.saved) > 0 {
				changes = record.saved[len(record.saved)-1]
			}
			change, recorded := changes["podenv-worker"].Components["kubelet"]
			if recorded != test.recorded {
				t.Errorf("recorded: %t, want %t", recorded, test.recorded)
			}
			if recorded && (!cmp.Equal(change.Original, originalState) || test.before == nil && !cmp.Equal(change.Gates, i.wanted)) {
				t.Errorf("recorded %+v", change)
			}
		})
	}
}

// A push is made on all nodes or on none.
func TestAnOperationOnSeveralNodesIsTakenBackOnAll(t *testing.T) {
	good := fakeComponent{runs: "old", old: "old", new: "new"}
	bad := good
	bad.failAt, bad.fail = "serves-new", errors.New("it crashes")
	record := &fakeRecord{}
	o := &operation{cluster: record, component: "kubelet", steps: &steps{reporter: progress.New(new(strings.Builder), false, 0, t.TempDir())}}
	for node, f := range map[string]*fakeComponent{"a": &good, "b": &bad} {
		i := &instance{component: f, target: &target{node: node, name: "kubelet"}}
		if err := o.plan(t.Context(), i, swapToNew); err != nil {
			t.Fatal(err)
		}
		o.instances = append(o.instances, i)
	}
	err := o.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "node b: it crashes") || !strings.Contains(err.Error(), "log on b") {
		t.Errorf("error %v", err)
	}
	if good.runs != "old" || bad.runs != "old" || len(record.saved) != 2 || len(record.saved[1]) != 0 {
		t.Fatalf("nodes run %s and %s, recorded %v", good.runs, bad.runs, record.saved)
	}
	if during := record.saved[0]; len(during) != 2 {
		t.Errorf("while the nodes changed, only %v was recorded", during)
	}
}

// The API of a cluster with several control planes stays up, also when the change is taken back.
func TestControlPlanesChangeOneAfterAnother(t *testing.T) {
	for failing, want := range map[string]string{
		"":  "a:apply a:serves-new b:apply b:serves-new c:apply c:serves-new",
		"b": "a:apply a:serves-new b:apply b:serves-new b:revert b:serves-old a:revert a:serves-old",
	} {
		var calls []string
		var mu sync.Mutex
		o := &operation{cluster: &fakeRecord{}, component: "etcd", steps: &steps{reporter: progress.New(new(strings.Builder), false, 0, t.TempDir())}}
		for _, node := range []string{"a", "b", "c"} {
			f := &fakeComponent{runs: "old", old: "old", new: "new", each: func(what string) {
				mu.Lock()
				defer mu.Unlock()
				if what != "stage" && what != "clean" {
					calls = append(calls, node+":"+what)
				}
			}}
			if node == failing {
				f.failAt, f.fail = "serves-new", errors.New("it crashes")
			}
			i := &instance{component: f, target: &target{node: node, name: "etcd"}}
			if err := o.plan(t.Context(), i, swapToNew); err != nil {
				t.Fatal(err)
			}
			o.instances = append(o.instances, i)
		}
		o.steps.next(nil, "looking")
		if err := o.run(t.Context()); (err == nil) != (failing == "") {
			t.Fatalf("node %q fails: %v", failing, err)
		}
		if got := strings.Join(calls, " "); got != want {
			t.Errorf("node %q fails:\n%s, want\n%s", failing, got, want)
		}
	}
}

func TestOperationsRefuseUnknownNodesAndComponents(t *testing.T) {
	nodes := []cluster.Node{{Name: "podenv-control-plane", Role: "control-plane"}, {Name: "podenv-worker", Role: "worker"}}
	tests := map[string]struct{ node, component, says string }{
		"a node of another cluster":  {"other-worker", "kubelet", "choose one of podenv-control-plane, podenv-worker"},
		"an API server on a worker":  {"podenv-worker", "kube-apiserver", "name a control plane"},
		"a kubelet on a worker":      {"podenv-worker", "kubelet", ""},
		"an etcd on a control plane": {"podenv-control-plane", "etcd", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n, err := findNode(nodes, test.node, "podenv")
			if err == nil {
				err = checkRuns(n, test.component)
			}
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
	if _, err := findNode(nodes, "other-worker", "podenv"); !errors.Is(err, cluster.ErrNotOurs) {
		t.Errorf("a node that is not the cluster's: %v", err)
	}
	if _, err := (&target{name: "coredns"}).component(); err == nil || !strings.Contains(err.Error(), "choose kubelet, kube-apiserver") {
		t.Errorf("a component that nodes do not have: %v", err)
	}
}

func TestPodsAreSwappedByImage(t *testing.T) {
	for _, c := range []component{&staticPod{target: &target{name: "kube-scheduler"}}, &daemonSet{target: &target{name: "kube-proxy"}}} {
		if err := c.stage(t.Context(), change{binary: "file"}, cluster.State{}); err == nil || !strings.Contains(err.Error(), "takes an image") {
			t.Errorf("%T: %v", c, err)
		}
	}
}

func TestNewestLog(t *testing.T) {
	for names, want := range map[string]int{"": 0, "0.log\n": 1, "9.log\n10.log\n10.log.20261121-013000\n": 11, "previous\n": 0} {
		if got := newestLog(names); got != want {
			t.Errorf("newestLog(%q) = %d, want %d", names, got, want)
		}
	}
}

func TestParseUnit(t *testing.T) {
	pid, restarts, err := parseUnit("MainPID=4711\nNRestarts=2\n")
	if err != nil || pid != "4711" || restarts != 2 {
		t.Errorf("parseUnit: %s, %d, %v", pid, restarts, err)
	}
	for _, out := range []string{"", "Failed to connect to bus", "MainPID=1\nNRestarts=many"} {
		if pid, restarts, err := parseUnit(out); err == nil {
			t.Errorf("parseUnit(%q) = %s, %d", out, pid, restarts)
		}
	}
}
