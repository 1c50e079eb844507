package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/interrupt"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

const (
	// envNodeImage names the node image that TestLive makes its cluster from.
	envNodeImage = "PODENV_NODE_IMAGE"
	// envGates has gates that the image's release knows, written as for a kubelet's
	// --feature-gates; the default is none.
	envGates = "PODENV_GATES"
	// foreignContext is the current context of the user's kubeconfig before the test.
	foreignContext = "others"
)

// liveName is the name of the cluster.
var liveName = layout.MustFind().UniqueName("podenv-live-cluster")

// TestLive makes a cluster, uses it and deletes it; its parts build on one another.
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
	kubeconfig := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", kubeconfig)
	others := api.Config{CurrentContext: foreignContext, Contexts: map[string]*api.Context{foreignContext: {}}}
	if err := clientcmd.WriteToFile(others, kubeconfig); err != nil {
		t.Fatal(err)
	}
	// The path is fixed, so that this run owns a cluster that a killed run left.
	root := filepath.Join(os.TempDir(), liveName)
	t.Cleanup(func() { os.RemoveAll(root) })
	l := &live{
		ctx:    ctx,
		engine: e,
		layout: layout.Layout{Root: root},
		config: Config{Name: liveName, NodeImage: image, Workers: 1, Temporary: true, Gates: parseGateFlag(t, os.Getenv(envGates))},
	}
	if err := l.sweep(); err != nil { // what a killed run left
		t.Fatal(err)
	}
	l.before = l.leftovers(t)
	t.Cleanup(func() {
		if err := l.sweep(); err != nil {
			t.Error(err)
		}
	})
	for _, part := range []struct {
		promise string
		test    func(*testing.T)
	}{
		{"a create that is interrupted while nodes are made leaves nothing", l.interruptedEarly},
		{"a create that is interrupted while images are loaded leaves nothing", l.interruptedLate},
		{"a name that somebody else uses is refused", l.refused},
		{"a port that is in use is refused", l.portInUse},
		{"two creates at once make one cluster, which serves", l.created},
		{"its nodes are in a network of its own", l.network},
		{"its nodes do not start again with the container engine", l.temporary},
		{"another create returns the same nodes", l.reused},
		{"commands and journals of nodes are at hand", l.nodes},
		{"images are loaded onto every node", l.images},
		{"a pod that does not get ready is shown with its log", l.failingPod},
		{"another checkout leaves the cluster alone", l.otherCheckout},
		{"a node that was stopped is started", l.stopped},
		{"a cluster that something runs on is kept", l.inUse},
		{"a cluster that nothing runs on is recreated if it differs", l.recreated},
		{"a checkout without _output deletes all of it", l.deleted},
	} {
		if !t.Run(part.promise, part.test) {
			t.FailNow()
		}
	}
}

// live is the state that the parts of TestLive share.
type live struct {
	ctx     context.Context // it ends with Ctrl-C
	engine  *engine.Engine
	layout  layout.Layout
	config  Config
	before  string
	cluster *Cluster
}

// sweep deletes whatever exists of the cluster.
func (l *live) sweep() error {
	d, ctx := docker(l.engine.Docker), context.Background()
	return errors.Join(d.sweep(ctx, liveName), d.removeNetwork(ctx, "kind-"+liveName))
}

func parseGateFlag(t *testing.T, flag string) map[string]bool {
	t.Helper()
	set := make(map[string]bool)
	for pair := range strings.SplitSeq(flag, ",") {
		name, on, ok := strings.Cut(pair, "=")
		if pair != "" && (!ok || on != "true" && on != "false") {
			t.Fatalf("%s=%s: want Name=true,Other=false", envGates, flag)
		}
		if ok {
			set[name] = on == "true"
		}
	}
	return set
}

func (l *live) docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.engine.Docker(context.Background(), args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// leftovers lists what a deleted cluster must not leave.
func (l *live) leftovers(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("nodes %q, networks %q", l.nodeIDs(t),
		l.docker(t, "network", "ls", "--quiet", "--filter", "name=^kind-"+liveName+"$"))
}

func (l *live) checkNothingLeft(t *testing.T) {
	t.Helper()
	if left := l.leftovers(t); left != l.before {
		t.Errorf("left: %s; before there were %s", left, l.before)
	}
	config, err := clientcmd.LoadFromFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Contexts) != 1 || config.CurrentContext != foreignContext {
		t.Errorf("the kubeconfig has %d contexts, the current one is %q", len(config.Contexts), config.CurrentContext)
	}
}

func (l *live) create(t *testing.T, cfg Config) (*Cluster, error) {
	t.Helper()
	return Create(l.ctx, l.layout, l.engine, cfg, nil)
}

func (l *live) nodeIDs(t *testing.T) string {
	t.Helper()
	return l.docker(t, "ps", "--all", "--no-trunc", "--quiet", "--filter", "label="+labelCluster+"="+liveName)
}

func (l *live) interruptedEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	go func() {
		poll.Until(ctx, time.Minute, func(ctx context.Context) error { //nolint:errcheck // Create fails or succeeds without
			found, err := docker(l.engine.Docker).containers(ctx, liveName)
			if err == nil && len(found) > 0 {
				cancel()
			}
			return errors.New("a node")
		})
	}()
	if _, err := Create(ctx, l.layout, l.engine, l.config, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v, want context.Canceled", err)
	}
	l.checkNothingLeft(t)
}

// interruptedLate interrupts the work after the nodes are created. Progress is drawn a few
// times a second: loading an image of this size takes longer on any host.
func (l *live) interruptedLate(t *testing.T) {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	shown := progress.New(writer(func(text string) {
		if strings.Contains(text, "loading large.tar") {
			cancel()
		}
	}), true, 200, t.TempDir())
	large, err := random.Image(128<<20, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg := l.config
	cfg.Images = []string{filepath.Join(t.TempDir(), "large.tar")}
	if err := tarball.WriteToFile(cfg.Images[0], name.MustParseReference("podenv.dev/large:1").(name.Tag), large); err != nil {
		t.Fatal(err)
	}
	step := shown.Step("cluster")
	_, err = Create(ctx, l.layout, l.engine, cfg, step)
	if err = step.End(err); !errors.Is(err, context.Canceled) {
		t.Fatalf("Create: %v, want context.Canceled", err)
	}
	l.checkNothingLeft(t)
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }

func (l *live) refused(t *testing.T) {
	name := controlPlane(liveName)
	l.docker(t, "create", "--name", name, "--label", labelCluster+"="+liveName, l.config.NodeImage)
	defer l.docker(t, "rm", "--force", "--volumes", name)
	_, err := l.create(t, l.config)
	if !errors.Is(err, ErrNotOurs) {
		t.Errorf("Create: %v, want ErrNotOurs", err)
	}
	t.Logf("it says: %v", err)
}

// portInUse requests a port that another process uses. Either Create notices, or only the
// engine: the other process has then taken the port after the check of Create.
func (l *live) portInUse(t *testing.T) {
	cfg := l.config
	cfg.APIServerPort = takenPort(t)
	_, err := l.create(t, cfg)
	if !errors.Is(err, remedy.ErrPortInUse) {
		t.Errorf("Create: %v, want ErrPortInUse", err)
	}
	t.Logf("Create says: %v", err)

	c := open(l.layout, l.engine, liveName)
	if c.record, err = c.newRecord(l.ctx, &cfg); err != nil {
		t.Fatal(err)
	}
	if err = c.create(l.ctx, &cfg, nil); err == nil {
		t.Error("two processes listen on one port")
	} else {
		err = remedy.Explain(c.abort(l.ctx, err, nil))
	}
	if !errors.Is(err, remedy.ErrPortInUse) || !strings.Contains(err.Error(), "run it again") {
		t.Errorf("creating: %v, want ErrPortInUse and what to do", err)
	}
	t.Logf("the engine says: %v", err)
	l.checkNothingLeft(t)
}

func (l *live) created(t *testing.T) {
	l.config.APIServerPort = freePort(t)
	var both errgroup.Group
	made := make([]*Cluster, 2)
	for i := range made {
		both.Go(func() (err error) {
			made[i], err = l.create(t, l.config)
			return err
		})
	}
	if err := both.Wait(); err != nil {
		t.Fatal(err)
	}
	l.cluster = made[0]
	nodes, err := l.cluster.Nodes(l.ctx)
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

func (l *live) temporary(t *testing.T) {
	for _, node := range []string{"-control-plane", "-worker"} {
		if got := l.docker(t, "inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", liveName+node); got != "no" {
			t.Errorf("the restart policy of %s is %q", node, got)
		}
	}
}

func (l *live) network(t *testing.T) {
	for _, node := range []string{"-control-plane", "-worker"} {
		format := "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}"
		if got, want := l.docker(t, "inspect", "--format", format, liveName+node), "kind-"+liveName+" "; got != want {
			t.Errorf("%s is in the networks %q, want %q", node, got, want)
		}
	}
	if set, ok := os.LookupEnv(NetworkEnv); ok {
		t.Errorf("%s is still set to %q", NetworkEnv, set)
	}
}

// reused also covers a kubeconfig in which the user has switched to another context, and a
// second kubeconfig.
func (l *live) reused(t *testing.T) {
	if err := useContext(os.Getenv("KUBECONFIG"), foreignContext); err != nil {
		t.Fatal(err)
	}
	if l.cluster.ExamplesRan(l.ctx) {
		t.Error("the examples have run on a new cluster")
	}
	if err := l.cluster.SaveExamplesRan(l.ctx); err != nil {
		t.Error(err)
	}
	l.sameNodes(t)
	if !l.cluster.ExamplesRan(l.ctx) {
		t.Error("the examples have not run on the same cluster")
	}
	if got := currentContext(os.Getenv("KUBECONFIG")); got != l.cluster.Context() {
		t.Errorf("the current context is %q", got)
	}
	first := os.Getenv("KUBECONFIG")
	second := filepath.Join(t.TempDir(), "config")
	t.Setenv("KUBECONFIG", second)
	l.sameNodes(t)
	if got := currentContext(second); got != l.cluster.Context() {
		t.Errorf("the current context of the second kubeconfig is %q", got)
	}
	want := map[string]string{first: foreignContext, second: ""}
	if diff := cmp.Diff(want, l.cluster.record.PreviousContexts); diff != "" {
		t.Errorf("previous contexts (-want +got):\n%s", diff)
	}
}

func (l *live) sameNodes(t *testing.T) {
	t.Helper()
	before := l.nodeIDs(t)
	var err error
	if l.cluster, err = l.create(t, l.config); err != nil {
		t.Fatal(err)
	}
	if after := l.nodeIDs(t); after != before {
		t.Errorf("nodes %q, before %q", after, before)
	}
}

func (l *live) nodes(t *testing.T) {
	nodes, err := l.cluster.Nodes(l.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if name, err := l.cluster.Exec(l.ctx, node.Name, "hostname"); err != nil || name != node.Name {
			t.Errorf("hostname of %s: %q, %v", node.Name, name, err)
		}
	}
	dir := t.TempDir()
	if err := l.cluster.CollectLogs(l.ctx, dir); err != nil {
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
	if err := l.cluster.LoadImage(l.ctx, func() (io.ReadCloser, error) { return os.Open(path) }, nil, liveName+"-worker"); err != nil {
		t.Fatal(err)
	}
	l.hasImage(t, "-control-plane", tag, false)
	if err := l.cluster.LoadImages(l.ctx, []string{path}, nil); err != nil {
		t.Fatal(err)
	}
	l.hasImage(t, "-control-plane", tag, true)
	l.hasImage(t, "-worker", tag, true)
}

func (l *live) hasImage(t *testing.T, node string, tag name.Tag, want bool) {
	t.Helper()
	images, err := l.cluster.Exec(l.ctx, liveName+node, "ctr", "--namespace=k8s.io", "images", "ls", "--quiet")
	if err != nil || strings.Contains(images, tag.Name()) != want {
		t.Errorf("images of %s: %v\n%s", node, err, images)
	}
}

// failingPod runs kube-proxy with an unknown flag.
func (l *live) failingPod(t *testing.T) {
	client, err := l.cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	set, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(l.ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(metav1.NamespaceSystem)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "failing"}, Spec: corev1.PodSpec{
		NodeName: liveName + "-worker",
		Containers: []corev1.Container{{
			Name: "proxy", Image: set.Spec.Template.Spec.Containers[0].Image, ImagePullPolicy: corev1.PullNever,
			Command: []string{"kube-proxy", "--no-such-flag"},
		}},
	}}
	if _, err := pods.Create(l.ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without a probe the pod is ready until it fails for the first time.
	err = poll.Until(l.ctx, time.Minute, func(ctx context.Context) error {
		p, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && failedContainer(p) == nil {
			err = fmt.Errorf("pod %s has not failed yet", pod.Name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = l.cluster.WaitServing(l.ctx, 10*time.Second, nil)
	for _, want := range []string{"pod failing on node " + liveName + "-worker is not ready", "container proxy", "exit status 1", "unknown flag: --no-such-flag"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error does not have %q: %v", want, err)
		}
	}
	t.Logf("it says: %v", err)
	if err := pods.Delete(l.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	if err := l.cluster.WaitServing(l.ctx, readyTimeout, nil); err != nil {
		t.Error(err)
	}
}

func (l *live) otherCheckout(t *testing.T) {
	before := l.nodeIDs(t)
	other := layout.Layout{Root: t.TempDir()}
	cfg := l.config
	cfg.Workers, cfg.Recreate = 0, true
	_, err := Create(l.ctx, other, l.engine, cfg, nil)
	if !errors.Is(err, ErrNotOurs) || !strings.Contains(err.Error(), l.layout.Root) {
		t.Errorf("Create: %v", err)
	}
	t.Logf("it says: %v", err)
	if _, err := Find(l.ctx, other, l.engine, liveName); !errors.Is(err, ErrNotOurs) {
		t.Errorf("Find: %v", err)
	}
	if after := l.nodeIDs(t); after != before {
		t.Errorf("nodes %q, before %q", after, before)
	}
}

func (l *live) stopped(t *testing.T) {
	l.docker(t, "stop", liveName+"-worker")
	l.sameNodes(t)
}

func (l *live) inUse(t *testing.T) {
	client, err := l.cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	before := l.nodeIDs(t)
	namespaces := client.CoreV1().Namespaces()
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := namespaces.Create(l.ctx, shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cfg := l.config
	cfg.Workers = 0
	_, err = l.create(t, cfg)
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "namespace shop") {
		t.Errorf("Create: %v, want ErrInUse", err)
	}
	t.Logf("it says: %v", err)
	if after := l.nodeIDs(t); after != before {
		t.Errorf("nodes %q, before %q", after, before)
	}
	if err := namespaces.Delete(l.ctx, "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err = poll.Until(l.ctx, time.Minute, func(ctx context.Context) error {
		if _, err := namespaces.Get(ctx, "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace to go: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (l *live) recreated(t *testing.T) {
	before := l.nodeIDs(t)
	cfg := l.config
	cfg.Workers = 0
	var err error
	if l.cluster, err = l.create(t, cfg); err != nil {
		t.Fatal(err)
	}
	if l.cluster.ExamplesRan(l.ctx) {
		t.Error("the examples have run on a cluster that was recreated")
	}
	if after := l.nodeIDs(t); strings.Contains(after, "\n") || strings.Contains(before, after) {
		t.Errorf("nodes %q, before %q", after, before)
	}
}

func (l *live) deleted(t *testing.T) {
	if err := os.RemoveAll(l.layout.Output()); err != nil {
		t.Fatal(err)
	}
	c, err := Find(l.ctx, l.layout, l.engine, liveName)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(l.ctx, nil); err != nil {
		t.Fatal(err)
	}
	l.checkNothingLeft(t)
	if _, err := Find(l.ctx, l.layout, l.engine, liveName); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v, want ErrNotFound", err)
	}
}
