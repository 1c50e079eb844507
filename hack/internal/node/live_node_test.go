package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/kubectl/pkg/drain"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/progress"
)

// Gates that are on by default in every supported minor, and that no test needs.
const (
	kubeletGate   = "RotateKubeletServerCertificate"
	apiServerGate = "StorageVersionHash"
)

func worker() string       { return liveName + "-worker" }
func controlPlane() string { return liveName + "-control-plane" }

func (l *live) setKubeletGate(t *testing.T) {
	l.setGate(t, worker(), "kubelet", kubeletGate)
}

// setAPIServerGate sets the gate again after undo, which must restore the manifest.
func (l *live) setAPIServerGate(t *testing.T) {
	manifest := func() string {
		sum, err := (&target{Cluster: l.cluster, node: controlPlane()}).fileSum(l.ctx, manifests+"kube-apiserver.yaml")
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	before := manifest()
	for range 2 {
		l.setGate(t, controlPlane(), "kube-apiserver", apiServerGate)
		if after := manifest(); after != before {
			t.Errorf("the manifest had SHA-256 %s, and has %s after undo", before, after)
		}
	}
}

// setGate turns a gate of a component off, twice, and undoes it.
func (l *live) setGate(t *testing.T, node, component, gate string) {
	off := map[string]*bool{gate: ptr.To(false)}
	for range 2 {
		changed, err := SetGates(l.ctx, l.cluster, node, component, off, nil)
		if err != nil || changed.Node != node || changed.Component != component || changed.Version == "" {
			t.Fatalf("SetGates: %+v, %v", changed, err)
		}
		s := l.state(t, node, component)
		if on, differs := s.Gates[gate]; !differs || on || !s.Changed {
			t.Fatalf("with the gate off the component says %+v", s)
		}
	}
	l.undo(t, node)
	if s := l.state(t, node, component); s.Changed || s.Gates[gate] != l.config.Gates[gate] {
		t.Errorf("after undo the component says %+v", s)
	}
	l.checkUnchanged(t)
}

func (l *live) refuseUnknownGate(t *testing.T) {
	before := l.state(t, worker(), "kubelet")
	_, err := SetGates(l.ctx, l.cluster, worker(), "kubelet", map[string]*bool{"NoSuchGate": ptr.To(true)}, nil)
	if err == nil || !strings.Contains(err.Error(), "does not know the gate NoSuchGate") {
		t.Errorf("SetGates: %v", err)
	}
	if after := l.state(t, worker(), "kubelet"); after.Version != before.Version || after.Changed {
		t.Errorf("the node was %+v and is %+v", before, after)
	}
}

// interruptedGate cancels the change once the kubelet has been restarted.
func (l *live) interruptedGate(t *testing.T) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	r := progress.New(cancelAt{"waiting for kubelet", cancel}, false, 0, t.TempDir())
	_, err := SetGates(ctx, l.cluster, worker(), "kubelet", map[string]*bool{kubeletGate: ptr.To(false)}, r)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the old configuration is back") {
		t.Fatalf("SetGates: %v", err)
	}
	if s := l.state(t, worker(), "kubelet"); s.Changed || s.Problem != "" || s.Gates[kubeletGate] != l.config.Gates[kubeletGate] {
		t.Errorf("after the interruption the component says %+v", s)
	}
	l.checkUnchanged(t)
}

// cancelAt is a writer that calls cancel when the phrase is written.
type cancelAt struct {
	phrase string
	cancel func()
}

func (c cancelAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), c.phrase) {
		c.cancel()
	}
	return len(p), nil
}

func (l *live) restartComponents(t *testing.T) {
	for _, component := range append([]string{"etcd"}, Components...) {
		if _, err := Restart(l.ctx, l.cluster, controlPlane(), component, nil); err != nil {
			t.Fatal(err)
		}
	}
	l.checkUnchanged(t)
}

func (l *live) drain(t *testing.T) {
	status := func() string { return l.state(t, worker(), "kubelet").Status }
	options := drain.Helper{IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, Force: true, GracePeriodSeconds: -1}
	for range 2 {
		if err := Drain(l.ctx, l.cluster, worker(), options, nil); err != nil {
			t.Fatal(err)
		}
		if got := status(); got != "Ready,SchedulingDisabled" {
			t.Fatalf("a drained node is %s", got)
		}
	}
	l.undo(t, worker())
	if got := status(); got != "Ready" {
		t.Errorf("after undo the node is %s", got)
	}
	options.IgnoreAllDaemonSets = false
	err := Drain(l.ctx, l.cluster, worker(), options, nil)
	if err == nil || !strings.Contains(err.Error(), "DaemonSet") || status() != "Ready" {
		t.Errorf("a node with pods that cannot be evicted: %v, it is %s", err, status())
	}
	l.checkUnchanged(t)
}

func (l *live) undo(t *testing.T, node string) {
	t.Helper()
	if _, changed, err := Undo(l.ctx, l.cluster, node, nil); err != nil || !changed {
		t.Fatal(changed, err)
	}
}

// state returns what List reports of a component.
func (l *live) state(t *testing.T, node, component string) State {
	t.Helper()
	states, err := List(l.ctx, l.cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Node == node && s.Component == component {
			return s
		}
	}
	t.Fatalf("node %s has no %s", node, component)
	return State{}
}
