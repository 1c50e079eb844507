package gate

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/progress"
)

// skew runs the specs with the gate on in the API server, and kubelets of older minors on the workers.
func (w *Walker) skew(ctx context.Context, r *progress.Reporter) error {
	w.Walk.Skew = map[string][]conformance.Row{}
	for _, older := range w.Older {
		err := w.swapped(ctx, r, func(n string) []node.Build {
			if n == w.controlPlane() {
				return nil
			}
			return []node.Build{older.Kubelet}
		}, func() (err error) {
			w.Walk.Skew[older.Kubelet.Version], err = w.specs(ctx, "kubelet-"+older.Kubelet.Version, r)
			return err
		})
		if err := errors.Join(err, w.Save()); err != nil {
			return err
		}
	}
	return nil
}

// upAndDown puts the previous minor's kubelets and then its API server under the stored objects, and
// goes back.
func (w *Walker) upAndDown(ctx context.Context, objects []stored, r *progress.Reporter) error {
	if len(w.Older) == 0 {
		return nil
	}
	older := w.Older[0]
	w.Walk.OlderRelease = older.APIServer.Version
	for i := range objects { // the comparison is with what is stored now
		s := &objects[i]
		now, err := s.client(w.objects, namespace).Get(ctx, s.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s.object = now.Object
	}
	err := w.swapped(ctx, r, func(n string) []node.Build {
		builds := []node.Build{older.Kubelet}
		if n == w.controlPlane() {
			builds = append(builds, older.APIServer)
		}
		return builds
	}, func() (err error) {
		w.Walk.Older, err = w.changed(ctx, objects)
		return err
	})
	if err != nil {
		return err
	}
	step := r.Step("objects with the release again")
	return step.End(w.back(ctx, w.Walk.Older, objects))
}

// swapped runs f while each node runs the builds that it gets, the control plane's last, and then undoes
// that. A gate that a build does not know is left out.
func (w *Walker) swapped(ctx context.Context, r *progress.Reporter, builds func(node string) []node.Build, f func() error) (err error) {
	defer func() { err = errors.Join(err, w.undo(context.WithoutCancel(ctx), r)) }()
	for i := len(w.nodes) - 1; i >= 0; i-- {
		for _, b := range builds(w.nodes[i].Name) {
			if _, err := node.Swap(ctx, w.Cluster, w.nodes[i].Name, b, nil, r); err != nil {
				return err
			}
		}
	}
	return f()
}
