package node

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/interrupt"
	"podenv.dev/hack/internal/layout"
)

// envNodeImage names the node image that TestLive makes its cluster from.
const envNodeImage = "PODENV_NODE_IMAGE"

// liveName is the name of the cluster.
var liveName = layout.MustFind().UniqueName("podenv-live-node")

// TestLive operates the nodes of a cluster; its parts build on one another.
func TestLive(t *testing.T) {
	image := os.Getenv(envNodeImage)
	if image == "" {
		t.Skipf("%s is not set: name a node image that the container engine has", envNodeImage)
	}
	// After Ctrl-C the current part fails, and the cleanup follows.
	ctx, stop := interrupt.Context(t.Context())
	t.Cleanup(stop)
	e, err := engine.Find(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	// The path is fixed, so that this run owns a cluster that a killed run left.
	root := filepath.Join(os.TempDir(), liveName)
	t.Cleanup(func() { os.RemoveAll(root) })
	l := &live{
		ctx: ctx, engine: e, layout: layout.Layout{Root: root},
		config: cluster.Config{Name: liveName, NodeImage: image, Workers: 1, Recreate: true, Temporary: true},
	}
	if l.cluster, err = cluster.Create(ctx, l.layout, e, l.config, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.delete(); err != nil {
			t.Error(err)
		}
	})
	for _, part := range []struct {
		promise string
		test    func(*testing.T)
	}{
		{"there is nothing to undo on a new node", l.undoNothing},
		{"a gate of a kubelet is set and undone", l.setKubeletGate},
		{"a gate that the kubelet does not know is refused", l.refuseUnknownGate},
		{"a change of a kubelet that is interrupted is taken back", l.interruptedGate},
		{"a gate of the kube-apiserver is set and undone", l.setAPIServerGate},
		{"every component is restarted", l.restartComponents},
		{"a node is drained and takes pods again", l.drain},
		{"a kubelet is pushed to every node, and undone on one", l.pushKubelet},
		{"a kubelet that does not start is taken back", l.pushBrokenKubelet},
		{"a kubectl is pushed and undone", l.pushKubectl},
		{"a kube-scheduler is pushed", l.pushPod("kube-scheduler")},
		{"a kube-controller-manager is pushed", l.pushPod("kube-controller-manager")},
		{"a kube-proxy is pushed", l.pushPod("kube-proxy")},
		{"a kube-apiserver is pushed", l.pushPod("kube-apiserver")},
		{"a kube-apiserver that does not start is taken back", l.pushBrokenAPIServer},
		{"all pushes are undone", l.undoPushes},
	} {
		if !t.Run(part.promise, func(t *testing.T) { timed(t, part.test) }) {
			t.FailNow()
		}
	}
}

// live is the state that the parts of TestLive share.
type live struct {
	ctx     context.Context // it ends with Ctrl-C
	engine  *engine.Engine
	layout  layout.Layout
	config  cluster.Config
	cluster *cluster.Cluster
}

func (l *live) delete() error {
	c, err := cluster.Find(context.Background(), l.layout, l.engine, liveName)
	if err != nil {
		return err
	}
	return c.Delete(context.Background(), nil)
}

func timed(t *testing.T, f func(*testing.T)) {
	t.Helper()
	start := time.Now()
	f(t)
	t.Logf("took %.1fs", time.Since(start).Seconds())
}

// checkUnchanged checks that the nodes are as they were created: otherwise the cluster would
// be recreated.
func (l *live) checkUnchanged(t *testing.T) {
	t.Helper()
	changes, err := l.cluster.Changes(l.ctx)
	if err != nil || len(changes) > 0 {
		t.Fatalf("recorded changes %v, %v", changes, err)
	}
	for _, node := range []string{worker(), controlPlane()} {
		kept, err := l.cluster.Exec(l.ctx, node, "sh", "-c",
			"ls -A /usr/bin /var/lib/kubelet "+manifests+" 2>&1 | grep -E '[.](original|old|new)$' || true")
		if err != nil || kept != "" {
			t.Errorf("files are left on %s: %q, %v", node, strings.Fields(kept), err)
		}
	}
	nodes := l.nodeIDs(t)
	if l.cluster, err = cluster.Create(l.ctx, l.layout, l.engine, l.config, nil); err != nil {
		t.Fatal(err)
	}
	if after := l.nodeIDs(t); after != nodes {
		t.Errorf("the nodes %q were recreated", nodes)
	}
}

func (l *live) nodeIDs(t *testing.T) string {
	t.Helper()
	out, err := l.engine.Docker(l.ctx, "ps", "--no-trunc", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+liveName).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (l *live) undoNothing(t *testing.T) {
	undone, changed, err := Undo(l.ctx, l.cluster, worker(), nil)
	if err != nil || changed || len(undone) > 0 {
		t.Errorf("undone %v, changed %t, %v", undone, changed, err)
	}
}
