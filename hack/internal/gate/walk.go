package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/suite"
)

// Walk is what a walk with one gate has found. A part that was not reached, or that the walk cannot
// tell, is nil or empty, and WriteMarkdown says so.
type Walk struct {
	Gate    Gate   `json:"gate"`
	Release string `json:"release"`
	// On and Again are the specs with the label of the gate, at first and after the gate was off.
	On    []conformance.Row `json:"on,omitempty"`
	Again []conformance.Row `json:"again,omitempty"`
	// Objects are the kinds of objects that the specs created, with their number.
	Objects map[string]int `json:"objects,omitempty"`
	// Dropped are the fields, as KIND: PATH, that an API server with the gate off leaves out of new
	// objects; Refused are its reasons for refusing some.
	Dropped []string `json:"dropped,omitempty"`
	Refused []string `json:"refused,omitempty"`
	// Stored has what became of objects that were stored with the gate on.
	Stored *Stored `json:"stored,omitempty"`
	// Metrics are the metrics that components serve with the gate on only, as COMPONENT: NAME.
	Metrics []string `json:"metrics,omitempty"`
	// Measured reports whether Metrics were compared.
	Measured bool `json:"measured"`
}

// Stored is what became of stored objects while the gate was off in the API server and the kubelets,
// and on again.
type Stored struct {
	Objects   int      `json:"objects"`
	Hidden    []string `json:"hidden,omitempty"`    // fields that were not shown while it was off
	Refused   []string `json:"refused,omitempty"`   // reasons for refusing the update of a label
	Lost      []string `json:"lost,omitempty"`      // fields that were not there again, of objects that nobody had written to
	Written   []string `json:"written,omitempty"`   // the same, of objects whose label was updated
	Restarted []string `json:"restarted,omitempty"` // containers that the kubelets restarted
	Pods      int      `json:"pods"`                // that ran
	Again     bool     `json:"again"`               // the gate was on again: Lost and Written are complete
}

// A walk stores objects in namespace. Its dry runs are in dryRuns, where nothing is stored: a LimitRange
// of one spec would change the pods of others.
const (
	namespace = "podenv-gate"
	dryRuns   = "podenv-gate-dry-runs"
)

// limits are resources that change or refuse what others store in their namespace.
var limits = []string{"limitranges", "resourcequotas"}

// Walker walks with one gate on a cluster that has it on, whose API server logs requests.
type Walker struct {
	Cluster *cluster.Cluster
	Specs   conformance.Options // for the gate's specs
	Walk    *Walk
	// Save is called whenever there is more to save.
	Save func() error

	client  kubernetes.Interface
	objects dynamic.Interface
	nodes   []cluster.Node
}

// Run makes the walk: the specs with the gate on; their objects, by dry runs with the gate on and off;
// such objects stored, while the gate goes off and on; the specs again. The cluster is as it was at
// the end, and after an error or Ctrl-C; what was found by then is in Walk.
func (w *Walker) Run(ctx context.Context, r *progress.Reporter) (err error) {
	if err := w.connect(ctx); err != nil {
		return err
	}
	if w.Walk.On, err = conformance.Run(ctx, w.Specs, r); err != nil && !errors.Is(err, suite.ErrNoSpecs) {
		return err
	}
	if err := w.Save(); err != nil {
		return err
	}
	step := r.Step("objects of the specs")
	probes, err := w.replayOn(ctx, step)
	if err := step.End(err); err != nil {
		return err
	}
	step = r.Step("storing objects")
	before, restarts, err := w.store(ctx, probes, step)
	if err := step.End(err); err != nil {
		return err
	}
	first, err := w.metrics(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.restore(context.WithoutCancel(ctx), r)) }()
	if err := w.set(ctx, false, r); err != nil {
		return err
	}
	step = r.Step("objects with the gate off")
	err = w.replayOff(ctx, probes, step)
	if err == nil {
		err = w.compareStored(ctx, before, false)
	}
	if err := step.End(errors.Join(err, w.Save())); err != nil {
		return err
	}
	off, err := w.metrics(ctx)
	if err != nil {
		return err
	}
	if err := w.set(ctx, true, r); err != nil {
		return err
	}
	step = r.Step("objects with the gate on again")
	if err = w.compareStored(ctx, before, true); err == nil {
		err = w.compareRestarts(ctx, restarts)
	}
	if again, metricsErr := w.metrics(ctx); metricsErr != nil {
		err = errors.Join(err, metricsErr)
	} else {
		w.Walk.Metrics, w.Walk.Measured = onlyOn(first, off, again), true
	}
	if err := step.End(errors.Join(err, w.Save())); err != nil {
		return err
	}
	w.Specs.Again = true
	if w.Walk.Again, err = conformance.Run(ctx, w.Specs, r); err != nil && !errors.Is(err, suite.ErrNoSpecs) {
		return err
	}
	return w.Save()
}

func (w *Walker) connect(ctx context.Context) error {
	config, err := w.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	if w.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if w.objects, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	w.nodes, err = w.Cluster.Nodes(ctx)
	return err
}

// controlPlane is the name of the node of the API server.
func (w *Walker) controlPlane() string {
	i := slices.IndexFunc(w.nodes, func(n cluster.Node) bool { return n.Role == "control-plane" })
	return w.nodes[max(i, 0)].Name
}

// set turns the gate on or off in the API server and in the kubelets of the workers, as far as they
// know it.
func (w *Walker) set(ctx context.Context, on bool, r *progress.Reporter) error {
	change := map[string]*bool{w.Walk.Gate.Name: &on}
	for _, n := range w.nodes {
		component := "kubelet"
		if n.Name == w.controlPlane() {
			component = "kube-apiserver"
		}
		if !slices.Contains(w.Walk.Gate.Components, component) {
			continue
		}
		if _, err := node.SetGates(ctx, w.Cluster, n.Name, component, change, r); err != nil {
			return err
		}
	}
	return nil
}

// restore undoes the operations on nodes and deletes the walk's objects.
func (w *Walker) restore(ctx context.Context, r *progress.Reporter) error {
	var all []error
	for _, n := range w.nodes {
		_, _, err := node.Undo(ctx, w.Cluster, n.Name, r)
		all = append(all, err)
	}
	for _, name := range []string{namespace, dryRuns} {
		if err := w.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// replayOn returns the objects that the specs created, with what an API server with the gate on stores
// of each in a dry run.
func (w *Walker) replayOn(ctx context.Context, step *progress.Step) ([]probe, error) {
	step.Now("reading the audit log")
	log, err := w.Cluster.Exec(ctx, w.controlPlane(), "sh", "-c", "cat "+auditLog+"*")
	if err != nil {
		return nil, err
	}
	probes, err := fromAudit(log)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{namespace, dryRuns} {
		if _, err := w.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		if err := w.awaitAccount(ctx, name); err != nil {
			return nil, err
		}
	}
	w.Walk.Objects = map[string]int{}
	for i := range probes {
		p := &probes[i]
		w.Walk.Objects[p.String()]++
		if p.on, _, err = p.dryRun(ctx, w.objects, dryRuns); err != nil {
			return nil, err
		}
		// What differs between two equal requests, such as the name of a token's volume, is not the gate's.
		another, _, err := p.dryRun(ctx, w.objects, dryRuns)
		if err != nil {
			return nil, err
		}
		p.varies = missing(p.on, another)
	}
	return probes, nil
}

// awaitAccount waits for the service account of pods in a new namespace.
func (w *Walker) awaitAccount(ctx context.Context, namespace string) error {
	return poll.Until(ctx, settle, func(ctx context.Context) error {
		_, err := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// replayOff compares, by dry runs, what an API server with the gate off stores with what one with
// the gate on does.
func (w *Walker) replayOff(ctx context.Context, probes []probe, step *progress.Step) error {
	for i, p := range probes {
		if p.on == nil {
			continue
		}
		step.Now("%s %d of %d", p, i+1, len(probes))
		off, refused, err := p.dryRun(ctx, w.objects, dryRuns)
		if err != nil {
			return err
		}
		if refused != "" {
			w.Walk.Refused = add(w.Walk.Refused, p.String()+": "+refused)
			continue
		}
		for _, path := range missing(p.on, off) {
			if !slices.Contains(p.varies, path) {
				w.Walk.Dropped = add(w.Walk.Dropped, p.String()+": "+path)
			}
		}
	}
	return nil
}

// stored is an object that a walk has stored with the gate on.
type stored struct {
	probe
	name    string
	object  map[string]any
	written bool // its label was updated while the gate was off
}

// store stores those objects that the API server took in a dry run, and waits until the pods among
// them run or have ended, for a minute. It also returns how often each container has started.
func (w *Walker) store(ctx context.Context, probes []probe, step *progress.Step) ([]stored, map[string]int32, error) {
	w.Walk.Stored = &Stored{}
	var all []stored
	for i, p := range probes {
		for _, kind := range []string{"untouched", "written"} {
			if p.on == nil || !p.namespaced || slices.Contains(limits, p.resource.Resource) {
				continue
			}
			name := fmt.Sprintf("%s-%d", kind, i)
			object, err := p.client(w.objects, namespace).Create(ctx, p.named(namespace, name), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				object, err = p.client(w.objects, namespace).Get(ctx, name, metav1.GetOptions{})
			}
			if err != nil {
				continue // the dry run of a single one was taken; a quota or a port may not allow two
			}
			all = append(all, stored{p, name, object.Object, kind == "written"})
		}
	}
	w.Walk.Stored.Objects = len(all)
	step.Now("waiting for the pods")
	var restarts map[string]int32
	err := poll.Until(ctx, settle, func(ctx context.Context) (err error) {
		var waiting int
		if restarts, waiting, err = w.restarts(ctx); err == nil && waiting > 0 {
			err = errPending
		}
		return err
	})
	if errors.Is(err, errPending) { // a pod of a spec may wait for what the spec would have done
		err = nil
	}
	w.Walk.Stored.Pods = len(restarts)
	return all, restarts, err
}

// settle is how long pods may take until they run or have ended.
const settle = time.Minute

var errPending = errors.New("pods are pending")

// restarts returns the restart count of each running container, and how many pods neither run nor
// have ended.
func (w *Walker) restarts(ctx context.Context) (map[string]int32, int, error) {
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	counts, waiting := map[string]int32{}, 0
	for _, pod := range pods.Items {
		if pod.Status.Phase == v1.PodPending {
			waiting++
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Running != nil {
				counts[pod.Name+"/"+c.Name] = c.RestartCount
			}
		}
	}
	return counts, waiting, nil
}

// compareRestarts notes the containers that have started again.
func (w *Walker) compareRestarts(ctx context.Context, before map[string]int32) error {
	now, _, err := w.restarts(ctx)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if count, ok := now[name]; !ok || count != before[name] {
			w.Walk.Stored.Restarted = append(w.Walk.Stored.Restarted, name)
		}
	}
	return err
}

// compareStored compares the stored objects with what they were. While the gate is off it also
// updates a label of half of them.
func (w *Walker) compareStored(ctx context.Context, before []stored, again bool) error {
	found := w.Walk.Stored
	found.Again = again
	for i, s := range before {
		client := s.client(w.objects, namespace)
		now, err := client.Get(ctx, s.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) && !again {
			found.Hidden = add(found.Hidden, s.String()+": the whole object")
			continue
		}
		if err != nil {
			return err
		}
		for _, path := range missing(s.object, now.Object) {
			if strings.HasPrefix(path, "metadata.") {
				continue
			}
			switch path = s.String() + ": " + path; {
			case !again:
				found.Hidden = add(found.Hidden, path)
			case s.written:
				found.Written = add(found.Written, path)
			default:
				found.Lost = add(found.Lost, path)
			}
		}
		if s.written && !again {
			label := fmt.Appendf(nil, `{"metadata":{"labels":{"podenv.dev/written":"%d"}}}`, i)
			if _, err := client.Patch(ctx, s.name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
				found.Refused = add(found.Refused, s.String()+": "+err.Error())
			}
		}
	}
	return nil
}

// onlyOn returns the metrics that were there whenever the gate was on, and not while it was off. Some
// come with a component's first request of a kind, so that those of one time prove nothing.
func onlyOn(first, off, again []string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(m string) bool { return slices.Contains(off, m) || !slices.Contains(again, m) })
}

// metrics returns the names of the metrics of the API server and of a kubelet, as COMPONENT: NAME.
func (w *Walker) metrics(ctx context.Context) (names []string, err error) {
	worker := w.nodes[len(w.nodes)-1].Name
	for component, path := range map[string]string{"kube-apiserver": "/metrics", "kubelet": "/api/v1/nodes/" + worker + "/proxy/metrics"} {
		text, err := w.client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", component, err)
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("metrics of %s: %w", component, err)
		}
		for name := range families {
			names = append(names, component+": "+name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// add adds a text that is not there yet.
func add(to []string, text string) []string {
	if slices.Contains(to, text) {
		return to
	}
	return append(to, text)
}
