package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/client-go/tools/clientcmd"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
)

const (
	// envNodeImage names the node image that TestLive makes its cluster from.
	envNodeImage = "PODENV_NODE_IMAGE"
	// envGates has gates that the image's release knows, written as for a kubelet's
	// --feature-gates; the default is none.
	envGates = "PODENV_GATES"
	// liveName is the name of the cluster.
	liveName = "podenv-cluster-test"
)

// TestLive makes a cluster, works on it and deletes it; its parts build on one another.
func TestLive(t *testing.T) {
	image := os.Getenv(envNodeImage)
	if image == "" {
		t.Skipf("%s is not set: name a node image that the container engine has", envNodeImage)
	}
	e, err := engine.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", kubeconfig)
	l := &live{
		engine: e,
		layout: layout.Layout{Root: t.TempDir()},
		config: Config{Name: liveName, NodeImage: image, Workers: 1, Gates: parseGateFlag(t, os.Getenv(envGates))},
	}
	if err := l.sweep(); err != nil { // what a killed run left
		t.Fatal(err)
	}
	l.before = l.leftovers(t)
	t.Cleanup(func() { l.sweep() }) //nolint:errcheck // what is left fails the last part
	// Ctrl-C ends a test without its clean-up.
	signalled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ends := context.AfterFunc(signalled, func() {
		fmt.Fprintf(os.Stderr, "interrupted: deleting cluster %s: %v\n", liveName, l.sweep())
		os.Exit(1)
	})
	t.Cleanup(func() { ends(); stop() })

	for _, part := range []struct {
		promise string
		test    func(*testing.T)
	}{
		{"a create that is interrupted leaves nothing", l.interrupted},
		{"a name that somebody else uses is refused", l.refused},
		{"a port that is in use is refused", l.portInUse},
		{"a cluster is created and serves", l.created},
		{"a second create returns the same nodes", l.reused},
		{"commands and journals of nodes are at hand", l.nodes},
		{"images are loaded onto every node", l.images},
		{"a gate of a kubelet is set and undone", l.setKubeletGate},
		{"a gate that the kubelet does not know is refused", l.refuseUnknownGate},
		{"a change of a kubelet that is interrupted is taken back", l.interruptedGate},
		{"a gate of the kube-apiserver is set and undone", l.setAPIServerGate},
		{"every component is restarted", l.restartComponents},
		{"a node is drained and takes pods again", l.drain},
		{"a kubelet is pushed to every node", l.pushKubelet},
		{"a kubelet that does not start is taken back", l.pushBrokenKubelet},
		{"a kubectl is pushed", l.pushKubectl},
		{"a kube-scheduler is pushed", l.pushPod("kube-scheduler")},
		{"a kube-controller-manager is pushed", l.pushPod("kube-controller-manager")},
		{"a kube-proxy is pushed", l.pushPod("kube-proxy")},
		{"a kube-apiserver is pushed", l.pushPod("kube-apiserver")},
		{"a kube-apiserver that does not start is taken back", l.pushBrokenAPIServer},
		{"a checkout without _output deletes all of it", l.deleted},
	} {
		if !t.Run(part.promise, func(t *testing.T) { timed(t, part.test) }) {
			t.FailNow()
		}
	}
}

// live is the state that the parts of TestLive share.
type live struct {
	engine  *engine.Engine
	layout  layout.Layout
	config  Config
	before  map[string]string
	cluster *Cluster
}

// sweep deletes all that there is of the cluster.
func (l *live) sweep() error {
	d, ctx := docker(l.engine.Docker), context.Background()
	return errors.Join(d.sweep(ctx, liveName), d.removeNetwork(ctx))
}

func timed(t *testing.T, f func(*testing.T)) {
	t.Helper()
	start := time.Now()
	f(t)
	t.Logf("took %.1fs", time.Since(start).Seconds())
}

func parseGateFlag(t *testing.T, flag string) map[string]bool {
	t.Helper()
	gates := make(map[string]bool)
	for pair := range strings.SplitSeq(flag, ",") {
		name, on, ok := strings.Cut(pair, "=")
		if pair != "" && (!ok || on != "true" && on != "false") {
			t.Fatalf("%s=%s: want Name=true,Other=false", envGates, flag)
		}
		if ok {
			gates[name] = on == "true"
		}
	}
	return gates
}

func (l *live) docker(t *testing.T) docker {
	t.Helper()
	return l.engine.Docker
}

// leftovers lists what a cluster that was deleted must not leave behind. Others may
// use the engine at the same time.
func (l *live) leftovers(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for what, args := range map[string][]string{
		"nodes":           {"ps", "--all", "--format", "{{.Names}}", "--filter", "label=" + labelCluster + "=" + liveName},
		"users":           {"ps", "--all", "--quiet", "--filter", "network=" + network},
		"network of ours": {"network", "ls", "--quiet", "--filter", "label=" + labelNetwork},
		"unused volumes":  {"volume", "ls", "--quiet", "--filter", "dangling=true"},
	} {
		text, err := l.engine.Docker(context.Background(), args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		out[what] = text
	}
	if out["users"] != "" {
		delete(out, "network of ours") // it is somebody else's by now
	}
	delete(out, "users")
	return out
}

func (l *live) nothingLeft(t *testing.T) {
	t.Helper()
	for what, left := range l.leftovers(t) {
		if left != "" && (what != "unused volumes" || left != l.before[what]) {
			t.Errorf("left: %s %q", what, left)
		}
	}
	if config, err := os.ReadFile(os.Getenv("KUBECONFIG")); err == nil && strings.Contains(string(config), liveName) {
		t.Errorf("the kubeconfig has\n%s", config)
	}
}

func (l *live) interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		poll(ctx, time.Minute, func(ctx context.Context) error { //nolint:errcheck // Create fails or succeeds without
			found, err := l.docker(t).containers(ctx, liveName)
			if err == nil && len(found) > 0 {
				cancel()
			}
			return errors.New("a node")
		})
	}()
	if _, err := Create(ctx, l.layout, l.engine, l.config, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v, want context.Canceled", err)
	}
	l.nothingLeft(t)
}

func (l *live) refused(t *testing.T) {
	name := controlPlane(liveName)
	if err := l.engine.Docker(t.Context(), "create", "--name", name, "--label", labelCluster+"="+liveName, l.config.NodeImage).Run(); err != nil {
		t.Fatal(err)
	}
	defer l.engine.Docker(context.Background(), "rm", "--force", "--volumes", name).Run() //nolint:errcheck // the next part fails then
	_, err := Create(t.Context(), l.layout, l.engine, l.config, nil)
	if !errors.Is(err, ErrNotOurs) {
		t.Errorf("Create: %v, want ErrNotOurs", err)
	}
	t.Logf("it says: %v", err)
}

// portInUse asks for a port that another process has, which Create sees, or only the
// engine does: then it was taken while Create was at work.
func (l *live) portInUse(t *testing.T) {
	cfg := l.config
	cfg.APIServerPort = takenPort(t)
	_, err := Create(t.Context(), l.layout, l.engine, cfg, nil)
	if !errors.Is(err, engine.ErrPortInUse) {
		t.Errorf("Create: %v, want ErrPortInUse", err)
	}
	t.Logf("Create says: %v", err)

	c := open(l.layout, l.engine, liveName)
	if c.record, err = c.docker.want(t.Context(), &cfg); err != nil {
		t.Fatal(err)
	}
	if err = c.make(t.Context(), &cfg, nil); err == nil {
		t.Error("two processes listen on one port")
	} else {
		err = engine.Explain(c.undo(t.Context(), err, nil))
	}
	if !errors.Is(err, engine.ErrPortInUse) || !strings.Contains(err.Error(), "run it again") {
		t.Errorf("creating: %v, want ErrPortInUse and what to do", err)
	}
	t.Logf("the engine says: %v", err)
	l.nothingLeft(t)
}

func (l *live) created(t *testing.T) {
	var err error
	l.config.APIServerPort = untakenPort(t)
	if l.cluster, err = Create(t.Context(), l.layout, l.engine, l.config, nil); err != nil {
		t.Fatal(err)
	}
	nodes, err := l.cluster.Nodes(t.Context())
	if err != nil || len(nodes) != 2 || nodes[0].Role != "control-plane" || nodes[1].Role != "worker" {
		t.Errorf("nodes %v, %v", nodes, err)
	}
	user, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	if user.CurrentContext != l.cluster.Context() {
		t.Errorf("the user's context is %q, want %q", user.CurrentContext, l.cluster.Context())
	}
	if at, want := user.Clusters[l.cluster.Context()].Server, fmt.Sprintf("https://127.0.0.1:%d", l.config.APIServerPort); at != want {
		t.Errorf("the API server is at %s, want %s", at, want)
	}
	info, err := os.Stat(l.cluster.Kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the cluster's kubeconfig: %v, %v", info, err)
	}
}

func (l *live) reused(t *testing.T) {
	before, err := l.nodeIDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if l.cluster, err = Create(t.Context(), l.layout, l.engine, l.config, nil); err != nil {
		t.Fatal(err)
	}
	if after, err := l.nodeIDs(t.Context()); err != nil || after != before {
		t.Errorf("nodes %q, %v; before %q", after, err, before)
	}
}

func (l *live) nodeIDs(ctx context.Context) (string, error) {
	return l.engine.Docker(ctx, "ps", "--no-trunc", "--quiet", "--filter", "label="+labelCluster+"="+liveName).Output()
}

func (l *live) nodes(t *testing.T) {
	nodes, err := l.cluster.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if name, err := l.cluster.Exec(t.Context(), node.Name, "hostname"); err != nil || name != node.Name {
			t.Errorf("hostname of %s: %q, %v", node.Name, name, err)
		}
		if journal, err := l.cluster.Logs(t.Context(), node.Name, "kubelet"); err != nil || !strings.Contains(journal, "kubelet[") {
			t.Errorf("journal of %s: %d bytes, %v", node.Name, len(journal), err)
		}
	}
	dir := t.TempDir()
	if err := l.cluster.CollectLogs(t.Context(), dir); err != nil {
		t.Error(err)
	}
	if logs, _ := filepath.Glob(filepath.Join(dir, "*/kubelet.log")); len(logs) != 2 {
		t.Errorf("kubelet logs collected: %q", logs)
	}
}

func (l *live) images(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	tag := name.MustParseReference("podenv.dev/cluster-test:1").(name.Tag)
	if err := tarball.WriteToFile(path, tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	if err := l.cluster.LoadImages(t.Context(), []string{path}, nil); err != nil {
		t.Fatal(err)
	}
	nodes, err := l.cluster.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		images, err := l.cluster.Exec(t.Context(), node.Name, "ctr", "--namespace=k8s.io", "images", "ls", "--quiet")
		if err != nil || !strings.Contains(images, tag.Name()) {
			t.Errorf("images of %s: %v\n%s", node.Name, err, images)
		}
	}
}

func (l *live) deleted(t *testing.T) {
	fresh := layout.Layout{Root: t.TempDir()}
	c, err := Find(t.Context(), fresh, l.engine, liveName)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	l.nothingLeft(t)
	if _, err := Find(t.Context(), fresh, l.engine, liveName); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v, want ErrNotFound", err)
	}
}
