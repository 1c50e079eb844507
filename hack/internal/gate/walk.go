package gate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
// tell, is nil or empty, and Markdown says so.
type Walk struct {
	Gate    Gate   `json:"gate"`
	Release string `json:"release"`
	Build   string `json:"build"` // names the contents of all programs that the walk runs
	Command string `json:"command"`
	// Needs are the gates that it needs, which are on all the time. NeededBy are those that need it, which
	// are off while it is.
	Needs    []string `json:"needs,omitempty"`
	NeededBy []string `json:"neededBy,omitempty"`
	// Complete reports that no part is left.
	Complete bool `json:"complete"`
	// Problem is why it was not completed.
	Problem string `json:"problem,omitempty"`
	// On and Again are the specs with the label of the gate, at first and after the gate was off.
	On    []conformance.Row `json:"on,omitempty"`
	Again []conformance.Row `json:"again,omitempty"`
	// Ended says which runs of specs ended before all of these had run.
	Ended []string `json:"ended,omitempty"`
	// Objects are how many objects of the specs an API server with the gate on takes again, by kind.
	Objects map[string]int `json:"objects,omitempty"`
	// Dropped are the fields, as KIND: PATH, that an API server with the gate off leaves out of new
	// objects; Refused are its reasons for refusing some.
	Dropped []string `json:"dropped,omitempty"`
	Refused []string `json:"refused,omitempty"`
	// Servers has what became of objects that two API servers wrote to, one with the gate off.
	Servers *Servers `json:"servers,omitempty"`
	// Stored has what became of objects that were stored with the gate on, while it was off in the control
	// plane and the kubelets. Older has the same for the previous minor's API server and kubelets.
	Stored       *Stored `json:"stored,omitempty"`
	Older        *Stored `json:"older,omitempty"`
	OlderRelease string  `json:"olderRelease,omitempty"`
	// Skew has, by the release of the workers' kubelets, the specs with the gate on in the API server.
	Skew map[string][]conformance.Row `json:"skew,omitempty"`
	// Costs are what the components used for pods, off and on.
	Costs []Cost `json:"costs,omitempty"`
	// Metrics, COMPONENT: NAME, are those served with the gate on only; nil if they were not compared.
	Metrics []string `json:"metrics"`
}

// Stored is what became of stored objects while something else ran, and after all was as before.
type Stored struct {
	Objects   int      `json:"objects"`
	Hidden    []string `json:"hidden,omitempty"`    // fields that were not shown meanwhile
	Updated   int      `json:"updated"`             // objects whose label was updated meanwhile
	Refused   []string `json:"refused,omitempty"`   // reasons for refusing the update of a label
	Unwritten int      `json:"unwritten"`           // objects that nobody had written to
	Lost      []string `json:"lost,omitempty"`      // fields of those that were not there again
	Written   []string `json:"written,omitempty"`   // the same, of objects that the walk or a component wrote to
	Restarted []string `json:"restarted,omitempty"` // containers that the kubelets restarted, or that ended
	Pods      int      `json:"pods"`                // that ran
	Again     bool     `json:"again"`               // all was as before: Lost and Written are complete
}

// namespace is where a walk stores objects, and creates them in dry runs.
const namespace = "podenv-gate"

// Walker walks with one gate on a cluster that has it on, whose API server logs requests.
type Walker struct {
	Cluster *cluster.Cluster
	Minor   string
	Specs   conformance.Options // for the gate's specs
	// Older are the kubelets of stock minors before, the newest first. Before are the kubelet and the API
	// server of the minor before.
	Older, Before []node.Build
	Walk          *Walk
	Keep          bool // the cluster is not deleted afterwards
	// Save is called whenever there is more to save.
	Save func() error

	read       func(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, node, component string) ([]byte, error) // metrics
	reporter   *progress.Reporter
	client     kubernetes.Interface
	objects    dynamic.Interface
	nodes      []cluster.Node
	probes     []probe          // of the specs, and of featuregates/
	stored     []stored         // nil if storing them failed
	wide       []stored         // all that were stored outside of a namespace
	first, off []string         // metrics with the gate on, and off
	starts     map[string]int32 // restart counts of containers, when all was last as at first
}

// Run makes the walk. With Keep the cluster is as it was at the end, and after an error or Ctrl-C. What was
// found by then is in Walk.
func (w *Walker) Run(ctx context.Context, r *progress.Reporter) (err error) {
	w.read, w.reporter = node.Metrics, r
	if w.client, w.objects, err = w.clients(""); err != nil {
		return err
	}
	if w.nodes, err = w.Cluster.Nodes(ctx); err != nil {
		return err
	}
	err = w.runParts(ctx, w.parts())
	if w.Keep {
		err = errors.Join(err, w.restore(context.WithoutCancel(ctx)))
	}
	if err != nil {
		return err
	}
	w.Walk.Complete = true
	return w.Save()
}

// part is a part of a walk.
type part struct {
	name string
	run  func(ctx context.Context, step *progress.Step) error
	// alone says that the part and those after it do without those before it, since the last such part.
	alone bool
}

// parts are the parts of a walk, in their order.
func (w *Walker) parts() []part {
	return []part{
		{"specs of the gate", func(ctx context.Context, _ *progress.Step) error { return w.specs(ctx, &w.Walk.On, "") }, false},
		{"objects of the specs", w.replayOn, false},
		{"storing objects", w.store, false},
		{"two API servers", w.disagree, false},
		{"objects before", w.there, true},
		{"gate off", func(ctx context.Context, _ *progress.Step) error { return w.set(ctx, false) }, false},
		{"objects with the gate off", w.replayOff, false},
		{"costs with the gate off", func(ctx context.Context, step *progress.Step) error { return w.measure(ctx, false, step) }, false},
		{"gate on again", func(ctx context.Context, _ *progress.Step) error { return w.set(ctx, true) }, false},
		{"objects with the gate on again", func(ctx context.Context, _ *progress.Step) error {
			return errors.Join(w.back(ctx, w.Walk.Stored), w.restarted(ctx, w.Walk.Stored))
		}, false},
		{"costs with the gate on", func(ctx context.Context, step *progress.Step) error { return w.measure(ctx, true, step) }, false},
		{"specs again", func(ctx context.Context, _ *progress.Step) error { return w.specs(ctx, &w.Walk.Again, "again") }, false},
		{"up and down", w.upAndDown, true},
		{"older kubelets", w.skew, true},
	}
}

// runParts runs parts and saves what was found after each. After an error it goes on with the next part that
// is run alone, when what was done to nodes is undone, unless no objects are stored.
func (w *Walker) runParts(ctx context.Context, parts []part) (all error) {
	var err error
	for _, p := range parts {
		if err != nil && p.alone && w.stored != nil && ctx.Err() == nil {
			all, err = errors.Join(all, err), w.undo(ctx, w.nodes)
			if err == nil {
				w.starts, err = w.restarts(ctx)
			}
		}
		if err == nil {
			step := w.reporter.Step(p.name)
			err = errors.Join(step.End(p.run(ctx, step)), w.Save())
		}
	}
	return errors.Join(all, err)
}

// specs runs those specs of the gate that can run, with their results in a folder of that name. One that hangs
// until the timeout does not end the walk.
func (w *Walker) specs(ctx context.Context, rows *[]conformance.Row, folder string) (err error) {
	o := w.Specs
	o.Dir = filepath.Join(o.Dir, folder)
	for _, need := range needs {
		o.Skip = append(o.Skip, need.name.String())
	}
	*rows, err = conformance.Run(ctx, w.client, o, w.reporter)
	switch {
	case errors.Is(err, suite.ErrNoSpecs):
		err = nil
	case errors.Is(err, conformance.ErrEnded):
		w.Walk.Ended, err = append(w.Walk.Ended, err.Error()), nil
	}
	return err
}

// clients returns clients of the API server at address, HOST:PORT, or of the cluster's if that is empty.
func (w *Walker) clients(address string) (kubernetes.Interface, dynamic.Interface, error) {
	config, err := w.Cluster.RESTConfig()
	if err != nil {
		return nil, nil, err
	}
	if address != "" {
		config.Host = "https://" + address
	}
	config.QPS, config.Burst, config.Timeout = 50, 100, time.Minute
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	return client, objects, err
}

// controlPlane is the name of the node of the API server, which is the first one.
func (w *Walker) controlPlane() string { return w.nodes[0].Name }

// switched are the gates that a walk turns on and off together.
func (w *Walk) switched() []string { return append([]string{w.Gate.Name}, w.NeededBy...) }

// set turns the gate on or off in the control plane and in the kubelets of the workers, as far as they know it.
func (w *Walker) set(ctx context.Context, on bool) error {
	changes := map[string]*bool{}
	for _, name := range w.Walk.switched() {
		changes[name] = &on
	}
	for _, n := range w.nodes {
		for _, component := range w.switchedOn(n) {
			if _, err := node.SetGates(ctx, w.Cluster, n.Name, component, changes, w.reporter); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchedOn are the components of n in which the gate is turned on and off, the API server first.
func (w *Walker) switchedOn(n cluster.Node) []string {
	return slices.DeleteFunc(slices.Clone(node.Components), func(c string) bool {
		return (c == "kubelet") == (n.Name == w.controlPlane()) || !slices.Contains(w.Walk.Gate.Components, c)
	})
}

// restore undoes the operations on nodes and deletes the walk's objects.
func (w *Walker) restore(ctx context.Context) error {
	err := w.undo(ctx, w.nodes)
	deleted := []error{w.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})}
	for _, s := range w.wide {
		deleted = append(deleted, s.client(w.objects, "").Delete(ctx, s.name, metav1.DeleteOptions{}))
	}
	return errors.Join(append(slices.DeleteFunc(deleted, apierrors.IsNotFound), err)...)
}

// undo undoes the operations on nodes, the first one's first: no kubelet may be newer than its API server.
func (w *Walker) undo(ctx context.Context, nodes []cluster.Node) (all error) {
	for _, n := range nodes {
		_, _, err := node.Undo(ctx, w.Cluster, n.Name, w.reporter)
		all = errors.Join(all, err)
	}
	return all
}

// replayOn makes the objects that the specs created the probes, with what an API server with the gate on
// stores of each in a dry run.
func (w *Walker) replayOn(ctx context.Context, step *progress.Step) error {
	step.Now("reading the audit log")
	log, err := w.Cluster.Exec(ctx, w.controlPlane(), "sh", "-c", "cat "+auditLog+"*")
	if err != nil {
		return err
	}
	probes, err := fromAudit(log)
	if err != nil {
		return err
	}
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := poll.Until(ctx, settle, func(ctx context.Context) error {
		_, err := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}) // without it, pods are refused
		return err
	}); err != nil {
		return err
	}
	needed, own, err := declared(w.Minor, w.Walk.Gate.Name)
	if err != nil {
		return err
	}
	for _, p := range needed {
		if _, err := p.client(w.objects, namespace).Create(ctx, p.named(namespace, p.object.GetName()), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	w.probes = append(own, probes...)
	for i := range w.probes {
		p := &w.probes[i]
		if p.on, _, err = p.dryRun(ctx, w.objects); err != nil {
			return err
		}
		// What differs between two equal requests, such as the name of a token's volume, is not the gate's.
		another, _, err := p.dryRun(ctx, w.objects)
		if err != nil {
			return err
		}
		p.varies = missing(p.on, another)
	}
	return nil
}

// replayOff compares, by dry runs, what an API server with the gate off stores with what one with
// the gate on does, and sees what became of the stored objects.
func (w *Walker) replayOff(ctx context.Context, step *progress.Step) (err error) {
	w.Walk.Objects = map[string]int{}
	for i, p := range w.probes {
		if p.on == nil || !w.Walk.Gate.ofAPIServer() {
			continue
		}
		w.Walk.Objects[p.String()]++
		step.Now("%s %d of %d", p, i+1, len(w.probes))
		off, refused, err := p.dryRun(ctx, w.objects)
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
	w.Walk.Stored, err = w.changed(ctx)
	return err
}

// stored is an object that a walk has stored with the gate on.
type stored struct {
	probe
	name    string
	object  *unstructured.Unstructured
	written bool // its label is updated while something else runs
}

// store stores those objects that the API server took in a dry run, and waits until the pods among
// them run or have ended, for a minute.
func (w *Walker) store(ctx context.Context, step *progress.Step) (err error) {
	all := []stored{}
	for i, p := range w.probes {
		if !p.storable() {
			continue
		}
		for _, kind := range []string{"untouched", "written"} {
			name := fmt.Sprintf("%s-%d", kind, i)
			s, err := w.create(ctx, w.objects, p, name)
			if err != nil {
				continue // the dry run of a single one was taken; a quota or a port may not allow two
			}
			s.written = kind == "written"
			all = append(all, s)
		}
	}
	step.Now("waiting for the pods")
	if _, err = w.settled(ctx, ""); err == nil {
		w.starts, err = w.restarts(ctx)
	}
	if err == nil {
		w.first, err = w.metrics(ctx)
	}
	if err == nil {
		w.stored = all
	}
	return err
}

// create stores p under a name by the API server of client, until restore.
func (w *Walker) create(ctx context.Context, client dynamic.Interface, p probe, name string) (s stored, err error) {
	s = stored{probe: p, name: name}
	if s.object, err = p.client(client, namespace).Create(ctx, p.named(namespace, name), metav1.CreateOptions{}); err == nil && !p.namespaced {
		w.wide = append(w.wide, s)
	}
	return s, err
}

// settle is how long pods may take until they run or have ended.
var settle = time.Minute

var errPending = errors.New("pods are pending")

// settled waits until none of the pods whose names begin with prefix is pending, and reports that, and that none
// failed. That one still is pending after the time is no error: a pod of a spec may wait for what the spec would have
// done.
func (w *Walker) settled(ctx context.Context, prefix string) (all bool, err error) {
	err = poll.Until(ctx, settle, func(ctx context.Context) error {
		all = true
		pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			ours := strings.HasPrefix(p.Name, prefix)
			if ours && p.Status.Phase == v1.PodPending {
				return errPending
			}
			all = all && (!ours || p.Status.Phase != v1.PodFailed)
		}
		return nil
	})
	if errors.Is(err, errPending) {
		return false, nil
	}
	return all && err == nil, err
}

// restarts returns the restart count of each container that has started.
func (w *Walker) restarts(ctx context.Context) (map[string]int32, error) {
	pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	counts := map[string]int32{}
	for _, pod := range pods.Items {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if c.State.Running != nil || c.RestartCount > 0 {
				counts[pod.Name+"/"+c.Name] = c.RestartCount
			}
		}
	}
	return counts, nil
}

// there takes the stored objects as they are now, without those that are gone.
func (w *Walker) there(ctx context.Context, _ *progress.Step) error {
	there := []stored{}
	for _, s := range w.stored {
		now, err := s.client(w.objects, namespace).Get(ctx, s.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.object = now
		there = append(there, s)
	}
	w.stored = there
	return nil
}

// changed compares the stored objects with what they were, and updates a label of half of them. Call it
// while something else runs, back when the API server is as before, and restarted when all is.
func (w *Walker) changed(ctx context.Context) (*Stored, error) {
	found := &Stored{Objects: len(w.stored), Pods: len(w.starts)}
	for i, s := range w.stored {
		differs, _, err := s.differing(ctx, w.objects)
		if err != nil {
			return nil, err
		}
		found.Hidden = add(found.Hidden, differs...)
		if !s.written {
			continue
		}
		why, err := s.relabel(ctx, w.objects, fmt.Sprint(time.Now().Unix(), "-", i))
		if err != nil {
			return nil, err
		}
		if found.Refused = add(found.Refused, why...); why == nil {
			found.Updated++
		}
	}
	return found, nil
}

// back notes which fields are not there again.
func (w *Walker) back(ctx context.Context, found *Stored) error {
	for _, s := range w.stored {
		differs, written, err := s.differing(ctx, w.objects)
		if err != nil {
			return err
		}
		if written {
			found.Written = add(found.Written, differs...)
			continue
		}
		found.Unwritten++
		found.Lost = add(found.Lost, differs...)
	}
	return nil
}

// calm is how long containers may take to end: their grace period, and what a kubelet takes to look at its pods.
var calm = 40 * time.Second

// restarted notes which containers were restarted or ended, and completes found.
func (w *Walker) restarted(ctx context.Context, found *Stored) error {
	poll.Until(ctx, calm, func(context.Context) error { return errPending }) //nolint:errcheck // a container that is being ended still runs
	now, err := w.restarts(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.starts)) {
		starts, there := now[name]
		if !there {
			found.Restarted = append(found.Restarted, name+", which ended")
		} else if w.starts[name] == 0 && starts > 0 { // one that had restarted before does so by itself
			found.Restarted = append(found.Restarted, name)
		}
	}
	w.starts, found.Again = now, true
	return nil
}

// differing returns the fields, but for metadata, in which an object, as the API server of client shows it, differs
// from what was stored, with its kind, and whether it was written to since.
func (s stored) differing(ctx context.Context, client dynamic.Interface) (paths []string, written bool, err error) {
	now, err := s.client(client, namespace).Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return []string{s.String() + ": the whole object"}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, path := range missing(s.object.Object, now.Object) {
		if !strings.HasPrefix(path, "metadata.") {
			paths = append(paths, s.String()+": "+path)
		}
	}
	return paths, s.object.GetResourceVersion() != now.GetResourceVersion(), nil
}

// relabel updates a label of an object by the API server of client, and returns why it was refused, if it was.
func (s stored) relabel(ctx context.Context, client dynamic.Interface, value string) (refused []string, err error) {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"podenv.dev/written":%q}}}`, value)
	_, err = s.client(client, namespace).Patch(ctx, s.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if why := refusal(err); why != "" {
		return []string{s.String() + ": " + strings.ReplaceAll(why, s.name, "NAME")}, nil
	}
	return nil, err
}

// onlyOn returns the metrics that were there whenever the gate was on, and not while it was off. Some
// come with a component's first request of a kind, so that those of one time prove nothing.
func onlyOn(first, off, again []string) []string {
	return slices.DeleteFunc(slices.Clone(first), func(m string) bool { return slices.Contains(off, m) || !slices.Contains(again, m) })
}

// add adds texts that are not there yet.
func add(to []string, texts ...string) []string {
	for _, text := range texts {
		if !slices.Contains(to, text) {
			to = append(to, text)
		}
	}
	return to
}
