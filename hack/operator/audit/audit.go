package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// pageSize is how many objects are asked for at a time: kubectl's own chunk.
const pageSize = 500

// ErrNoNamespace is returned by Run for a namespace that the cluster does not have: an
// audit of a slip of the pen must not pass for one that found nothing.
var ErrNoNamespace = errors.New("no such namespace")

// Options say what to look at.
type Options struct {
	// Dynamic reads PodPresets, which the typed client does not have. They are left out if it is nil.
	Dynamic    dynamic.Interface
	Namespace  string // all if empty
	SkipKeys   bool   // do not read the ConfigMaps and Secrets that envFrom names
	OwnersOnly bool   // leave out what the object's controller uses in the same way
	PageSize   int64  // objects per request; 500 if zero
}

// Report is what an audit found.
type Report struct {
	Findings []Finding // sorted by namespace, kind and name
	Objects  int       // pods, templates and PodPresets looked at
	Unread   []error   // why a resource could not be read to its end, one each
	// Resources are those that the user needs permission for, as kubectl and RBAC name them.
	Resources []string
}

// Run looks at every pod, pod template and PodPreset. It skips a resource that the server
// does not have. A resource that the server refuses to list or get is in the Report's Unread.
// There is no Report with an error: ErrNoNamespace, no answer, no valid credentials, or the
// error of ctx.
func Run(ctx context.Context, client kubernetes.Interface, o Options) (*Report, error) {
	if o.PageSize <= 0 {
		o.PageSize = pageSize
	}
	if err := checkNamespace(ctx, client, o.Namespace); err != nil {
		return nil, err
	}
	a := &audit{Options: o, client: client, owners: map[types.UID][]use{}, keys: newKeyReader(client)}
	a.Resources = []string{"configmaps", "secrets"}
	all := resources
	if o.Dynamic != nil {
		all = append(slices.Clone(resources), presetsOf(o.Dynamic))
	}
	known := false
	for _, r := range all {
		err := a.read(ctx, r)
		if !apierrors.IsNotFound(err) {
			a.Resources = append(a.Resources, r.name)
		}
		switch {
		case err == nil:
			known = true
		case fatal(ctx, err):
			return nil, fmt.Errorf("list %s: %w", r.name, err)
		case apierrors.IsNotFound(err):
			// A server of another version or make.
		default:
			known = true
			a.Unread = append(a.Unread, fmt.Errorf("list %s: %w", r.name, err))
		}
	}
	if !known {
		return nil, errors.New("the server has neither pods nor workloads: it is no Kubernetes API server")
	}
	for _, resource := range slices.Sorted(maps.Keys(a.keys.unread)) {
		a.Unread = append(a.Unread, a.keys.unread[resource])
	}
	slices.SortStableFunc(a.Findings, compare)
	return &a.Report, nil
}

// checkNamespace returns an error if the cluster is sure not to have the namespace. A
// user who may list its pods need not be allowed to get it.
func checkNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	if name == "" {
		return nil
	}
	_, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s", ErrNoNamespace, name)
	case fatal(ctx, err):
		return fmt.Errorf("get namespace %s: %w", name, err)
	}
	return nil
}

// fatal reports whether the next request will fail as this one did: the server did not
// answer, or does not know who asks.
func fatal(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return ctx.Err() != nil || !errors.As(err, &status) || apierrors.IsUnauthorized(err)
}

// audit is a run of Run.
type audit struct {
	Options
	Report
	client kubernetes.Interface
	owners map[types.UID][]use // what was found, by the object that it was found in
	keys   *keyReader
}

// read looks at all objects of r. What was found before an error counts.
func (a *audit) read(ctx context.Context, r resource) error {
	found, objects := len(a.Findings), a.Objects
	restart := func() { a.Findings, a.Objects = a.Findings[:found], objects }
	return r.list(a.client, a.Namespace).each(ctx, a.PageSize, restart, func(object *metav1.ObjectMeta, spec *v1.PodSpec) error {
		a.Objects++
		uses := uses(spec)
		if r.kind == PodPreset {
			uses = append([]use{{what: PodPreset}}, uses...)
		}
		if !a.SkipKeys {
			keys, err := a.keys.uses(ctx, object.Namespace, spec)
			if err != nil {
				return err
			}
			uses = append(uses, keys...)
		}
		if len(uses) == 0 {
			return nil
		}
		if a.OwnersOnly {
			a.owners[object.UID] = slices.Clone(uses)
			uses = a.withoutOwners(object, uses)
		}
		a.Findings = append(a.Findings, findings(r.kind, object, uses)...)
		return nil
	})
}

// withoutOwners takes away the uses that are in the object's controller too. A use
// that is only in what an older template made stays, as does one whose controller is
// no workload of Kubernetes or could not be read.
func (a *audit) withoutOwners(object *metav1.ObjectMeta, uses []use) []use {
	controller := metav1.GetControllerOfNoCopy(object)
	if controller == nil {
		return uses
	}
	return slices.DeleteFunc(uses, func(u use) bool { return slices.Contains(a.owners[controller.UID], u) })
}
