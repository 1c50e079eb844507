package node

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"podenv.dev/hack/internal/cluster"
)

// daemonSet changes kube-proxy. Its pods change on all nodes together; the same patch for
// each node does no harm.
type daemonSet struct {
	*target
	oldImage, newImage string
}

func (d *daemonSet) state(ctx context.Context) (s cluster.State, err error) {
	set, err := d.get(ctx)
	if err != nil {
		return s, err
	}
	for _, c := range set.Spec.Template.Spec.Containers {
		if c.Name == d.name {
			s.Image, d.oldImage = c.Image, c.Image
		}
	}
	pid, err := d.pid(ctx)
	if err == nil {
		s.SHA256, err = d.processSum(ctx, pid)
	}
	if err != nil {
		return s, nil //nolint:nilerr // a component that is down can be changed again
	}
	out, err := d.exec(ctx, "/proc/"+pid+"/exe", "--version")
	s.Version = printedVersion.FindString(out)
	return s, err
}

func (d *daemonSet) get(ctx context.Context) (*appsv1.DaemonSet, error) {
	return d.client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, d.name, metav1.GetOptions{})
}

func (d *daemonSet) stage(ctx context.Context, ch change, to cluster.State) (err error) {
	switch {
	case ch.original:
		d.newImage = to.Image
	case ch.image == "":
		return fmt.Errorf("%s runs as a pod: swapping it takes an image", d.name)
	default:
		d.newImage, err = d.loadImage(ctx, ch.image)
	}
	return err
}

func (d *daemonSet) apply(ctx context.Context) error  { return d.patch(ctx, d.newImage) }
func (d *daemonSet) revert(ctx context.Context) error { return d.patch(ctx, d.oldImage) }

func (d *daemonSet) patch(ctx context.Context, image string) error {
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, d.name, image)
	_, err := d.client.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, d.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (d *daemonSet) waitServing(ctx context.Context, want cluster.State) error {
	return d.await(ctx, want, func(ctx context.Context, sum string) error {
		pid, err := d.pid(ctx)
		if err != nil {
			return err
		}
		return d.checkBuild(ctx, pid, sum)
	}, func(ctx context.Context) error {
		set, err := d.get(ctx)
		if err != nil {
			return err
		}
		return checkRolledOut(set)
	})
}

// checkRolledOut checks that all pods of a daemon set have its current template and run.
func checkRolledOut(set *appsv1.DaemonSet) error {
	st := set.Status
	if st.ObservedGeneration < set.Generation || st.UpdatedNumberScheduled < st.DesiredNumberScheduled || st.NumberAvailable < st.DesiredNumberScheduled {
		return fmt.Errorf("daemon set %s: of %d pods %d are new and %d available", set.Name, st.DesiredNumberScheduled, st.UpdatedNumberScheduled, st.NumberAvailable)
	}
	return nil
}

func (d *daemonSet) files() []string { return nil }
