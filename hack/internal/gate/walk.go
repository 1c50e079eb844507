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
	// Objects are the kinds of objects of the specs that were compared, with their number: those that an API
	// server with the gate on takes again.
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
	// Metrics are the metrics that components serve with the gate on only, as COMPONENT: NAME; nil if they
	// were not compared.
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
	// Save is called whenever there is more to save.
	Save func() error

	read    func(ctx context.Context, c *cluster.Cluster, client kubernetes.Interface, node, component string) ([]byte, error) // metrics
	client  kubernetes.Interface
	objects dynamic.Interface
	nodes   []cluster.Node
	starts  map[string]int32 // restart counts of containers, when all was last as at first
}

// Run makes the walk, in the order of its steps below. The cluster is as it was at the end, and after
// an error or Ctrl-C; what was found by then is in Walk.
func (w *Walker) Run(ctx context.Context, r *progress.Reporter) (err error) {
	w.read = node.Metrics
	if w.client, w.objects, err = w.clients(""); err != nil {
		return err
	}
	if w.nodes, err = w.Cluster.Nodes(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.restore(context.WithoutCancel(ctx), r)) }()
	// part runs a part of the walk, unless an earlier one failed, and saves what was found.
	part := func(name string, run func(step *progress.Step)) {
		if err != nil {
			return
		}
		step := r.Step(name)
		run(step)
		err = errors.Join(step.End(err), w.Save())
	}
	var (
		probes              []probe
		objects             []stored
		first, off, metrics []string
	)
	part("specs of the gate", func(*progress.Step) { w.Walk.On, err = w.specs(ctx, "", r) })
	part("objects of the specs", func(step *progress.Step) { probes, err = w.replayOn(ctx, step) })
	part("storing objects", func(step *progress.Step) {
		if objects, err = w.store(ctx, probes, step); err == nil {
			first, err = w.metrics(ctx)
		}
	})
	part("two API servers", func(step *progress.Step) { err = w.disagree(ctx, probes, step) })
	part("gate off", func(*progress.Step) {
		if objects, err = w.there(ctx, objects); err == nil {
			err = w.set(ctx, false, r)
		}
	})
	part("objects with the gate off", func(step *progress.Step) {
		if err = w.replayOff(ctx, probes, step); err == nil {
			w.Walk.Stored, err = w.changed(ctx, objects)
		}
	})
	part("costs with the gate off", func(step *progress.Step) {
		if err = w.measure(ctx, objects, false, step); err == nil {
			off, err = w.metrics(ctx)
		}
	})
	part("gate on again", func(*progress.Step) { err = w.set(ctx, true, r) })
	part("objects with the gate on again", func(*progress.Step) {
		if err = w.back(ctx, w.Walk.Stored, objects); err == nil {
			err = w.restarted(ctx, w.Walk.Stored)
		}
	})
	part("costs with the gate on", func(step *progress.Step) {
		if err = w.measure(ctx, objects, true, step); err == nil {
			metrics, err = w.metrics(ctx)
		}
		if err == nil {
			w.Walk.Metrics = onlyOn(first, off, metrics)
		}
	})
	part("specs again", func(*progress.Step) { w.Walk.Again, err = w.specs(ctx, "again", r) })
	part("older kubelets", func(*progress.Step) { err = w.skew(ctx, r) })
	part("up and down", func(*progress.Step) { err = w.upAndDown(ctx, objects, r) })
	if err != nil {
		return err
	}
	w.Walk.Complete = true
	return w.Save()
}

// specs runs those specs of the gate that can run, with their results in a folder of that name. One that hangs
// until the timeout does not end the walk.
func (w *Walker) specs(ctx context.Context, folder string, r *progress.Reporter) ([]conformance.Row, error) {
	o := w.Specs
	o.Dir = filepath.Join(o.Dir, folder)
	for _, need := range needs {
		o.Skip = append(o.Skip, need.name.String())
	}
	rows, err := conformance.Run(ctx, w.client, o, r)
	switch {
	case errors.Is(err, suite.ErrNoSpecs):
		err = nil
	case errors.Is(err, conformance.ErrEnded):
		w.Walk.Ended, err = append(w.Walk.Ended, err.Error()), nil
	}
	return rows, err
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
func (w *Walker) set(ctx context.Context, on bool, r *progress.Reporter) error {
	changes := map[string]*bool{}
	for _, name := range w.Walk.switched() {
		changes[name] = &on
	}
	for _, n := range w.nodes {
		for _, component := range w.switchedOn(n) {
			if _, err := node.SetGates(ctx, w.Cluster, n.Name, component, changes, r); err != nil {
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
func (w *Walker) restore(ctx context.Context, r *progress.Reporter) error {
	err := w.undo(ctx, w.nodes, r)
	if deleted := w.client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); !apierrors.IsNotFound(deleted) {
		err = errors.Join(err, deleted)
	}
	return err
}

// undo undoes the operations on nodes, the first one's first: no kubelet may be newer than its API server.
func (w *Walker) undo(ctx context.Context, nodes []cluster.Node, r *progress.Reporter) (all error) {
	for _, n := range nodes {
		_, _, err := node.Undo(ctx, w.Cluster, n.Name, r)
		all = errors.Join(all, err)
	}
	return all
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
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace,
		Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	if err := poll.Until(ctx, settle, func(ctx context.Context) error {
		_, err := w.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}) // without it, pods are refused
		return err
	}); err != nil {
		return nil, err
	}
	needed, own, err := declared(w.Minor, w.Walk.Gate.Name)
	if err != nil {
		return nil, err
	}
	for _, p := range needed {
		if _, err := p.client(w.objects, namespace).Create(ctx, p.named(namespace, p.object.GetName()), metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	probes = append(own, probes...)
	for i := range probes {
		p := &probes[i]
		if p.on, _, err = p.dryRun(ctx, w.objects); err != nil {
			return nil, err
		}
		// What differs between two equal requests, such as the name of a token's volume, is not the gate's.
		another, _, err := p.dryRun(ctx, w.objects)
		if err != nil {
			return nil, err
		}
		p.varies = missing(p.on, another)
	}
	return probes, nil
}

// replayOff compares, by dry runs, what an API server with the gate off stores with what one with
// the gate on does.
func (w *Walker) replayOff(ctx context.Context, probes []probe, step *progress.Step) error {
	w.Walk.Objects = map[string]int{}
	for i, p := range probes {
		if p.on == nil || !w.Walk.Gate.ofAPIServer() {
			continue
		}
		w.Walk.Objects[p.String()]++
		step.Now("%s %d of %d", p, i+1, len(probes))
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
	return nil
}

// stored is an object that a walk has stored with the gate on.
type stored struct {
	probe
	name    string
	object  *unstructured.Unstructured
	relabel bool // its label is updated while something else runs
}

// store stores those objects that the API server took in a dry run, and waits until the pods among
// them run or have ended, for a minute.
func (w *Walker) store(ctx context.Context, probes []probe, step *progress.Step) ([]stored, error) {
	var all []stored
	for i, p := range probes {
		if !p.storable() {
			continue
		}
		for _, kind := range []string{"untouched", "written"} {
			name := fmt.Sprintf("%s-%d", kind, i)
			object, err := p.client(w.objects, namespace).Create(ctx, p.named(namespace, name), metav1.CreateOptions{})
			if err != nil {
				continue // the dry run of a single one was taken; a quota or a port may not allow two
			}
			all = append(all, stored{p, name, object, kind == "written"})
		}
	}
	step.Now("waiting for the pods")
	_, err := w.settled(ctx, "")
	if err == nil {
		w.starts, err = w.restarts(ctx)
	}
	return all, err
}

// settle is how long pods may take until they run or have ended.
var settle = time.Minute

var errPending = errors.New("pods are pending")

// settled waits until none of the pods whose names begin with prefix is pending, and reports that. That one still
// is after the time is no error: a pod of a spec may wait for what the spec would have done.
func (w *Walker) settled(ctx context.Context, prefix string) (all bool, err error) {
	err = poll.Until(ctx, settle, func(ctx context.Context) error {
		pods, err := w.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err == nil && slices.ContainsFunc(pods.Items, func(p v1.Pod) bool {
			return p.Status.Phase == v1.PodPending && strings.HasPrefix(p.Name, prefix)
		}) {
			err = errPending
		}
		return err
	})
	if errors.Is(err, errPending) {
		return false, nil
	}
	return err == nil, err
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

// there returns those of the objects that are there, as they are stored now.
func (w *Walker) there(ctx context.Context, objects []stored) (there []stored, err error) {
	for _, s := range objects {
		now, err := s.client(w.objects, namespace).Get(ctx, s.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.object = now
		there = append(there, s)
	}
	return there, nil
}

// changed compares the stored objects with what they were, and updates a label of half of them. Call it
// while something else runs, back when the API server is as before, and restarted when all is.
func (w *Walker) changed(ctx context.Context, before []stored) (*Stored, error) {
	found := &Stored{Objects: len(before), Pods: len(w.starts)}
	for i, s := range before {
		differs, _, err := w.differing(ctx, s)
		if err != nil {
			return nil, err
		}
		found.Hidden = add(found.Hidden, differs...)
		if !s.relabel {
			continue
		}
		if err := relabel(ctx, s.client(w.objects, namespace), s.name, fmt.Sprint(time.Now().Unix(), "-", i)); err != nil {
			found.Refused = add(found.Refused, s.String()+": "+err.Error())
		} else {
			found.Updated++
		}
	}
	return found, nil
}

// back notes which fields are not there again.
func (w *Walker) back(ctx context.Context, found *Stored, before []stored) error {
	for _, s := range before {
		differs, written, err := w.differing(ctx, s)
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

// restarted notes which containers were restarted or ended, and completes found.
func (w *Walker) restarted(ctx context.Context, found *Stored) error {
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

// differing returns the fields, but for metadata, in which an object differs from what was stored, with its
// kind, and whether it was written to since.
func (w *Walker) differing(ctx context.Context, s stored) (paths []string, written bool, err error) {
	now, err := s.client(w.objects, namespace).Get(ctx, s.name, metav1.GetOptions{})
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

// relabel updates a label of an object.
func relabel(ctx context.Context, client dynamic.ResourceInterface, name, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"podenv.dev/written":%q}}}`, value)
	_, err := client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
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
