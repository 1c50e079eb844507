package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/test/e2e/secondserver"
)

// Servers is what became of objects that two API servers, with the gate on and off, wrote to in turn.
type Servers struct {
	Objects int      `json:"objects"`
	Lost    []string `json:"lost,omitempty"`    // fields that the last one to read did not show as stored
	Refused []string `json:"refused,omitempty"` // reasons for refusing the update of a label
}

// start is how long an API server may take to start or to end.
const start = 3 * time.Minute

// disagree starts a second API server, with the gate off, beside the first. Each object is created by
// one of them, and written to by both in turn, as by clients behind one address.
func (w *Walker) disagree(ctx context.Context, probes []probe, step *progress.Step) (err error) {
	if !w.Walk.Gate.ofAPIServer() {
		return nil
	}
	defer func() { err = errors.Join(err, w.endSecond(context.WithoutCancel(ctx))) }()
	off, err := w.second(ctx, step)
	if err != nil {
		return err
	}
	found := &Servers{}
	for i, p := range probes {
		if !p.storable() {
			continue
		}
		step.Now("%s %d of %d", p, i+1, len(probes))
		for _, creator := range []dynamic.Interface{w.objects, off} {
			name := fmt.Sprintf("servers-%d", found.Objects)
			object, err := p.client(creator, namespace).Create(ctx, p.named(namespace, name), metav1.CreateOptions{})
			if err != nil {
				continue // the gate, a quota or a port may not allow it
			}
			found.Objects++
			for turn, server := range []dynamic.Interface{off, w.objects, off, w.objects} {
				if err := relabel(ctx, p.client(server, namespace), name, strconv.Itoa(turn)); err != nil {
					found.Refused = add(found.Refused, p.String()+": "+err.Error())
				}
			}
			lost, _, err := w.differing(ctx, stored{probe: p, name: name, object: object})
			if err != nil {
				return err
			}
			found.Lost = add(found.Lost, lost...)
		}
	}
	w.Walk.Servers = found
	_, err = w.settled(ctx, "servers-")
	return err
}

// second starts the second API server, and waits until it serves.
func (w *Walker) second(ctx context.Context, step *progress.Step) (dynamic.Interface, error) {
	step.Now("starting an API server with the gate off")
	first, err := w.Cluster.Exec(ctx, w.controlPlane(), "cat", secondserver.FirstManifest)
	if err != nil {
		return nil, err
	}
	manifest, err := secondserver.Manifest(first, secondserver.GatesOff(w.Walk.switched()))
	if err != nil {
		return nil, err
	}
	if _, err := w.Cluster.Exec(ctx, w.controlPlane(), "sh", "-c", secondserver.Install(manifest)); err != nil {
		return nil, err
	}
	_, address, _ := strings.Cut(first, "--advertise-address=") // both listen there
	address, _, _ = strings.Cut(address, "\n")
	client, objects, err := w.clients(net.JoinHostPort(address, strconv.Itoa(secondserver.Port)))
	if err != nil {
		return nil, err
	}
	if err := poll.Until(ctx, start, func(ctx context.Context) error {
		return client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return nil, fmt.Errorf("the API server with the gate off does not serve: %w", err)
	}
	return objects, nil
}

// endSecond stops the second API server, and waits until it has ended.
func (w *Walker) endSecond(ctx context.Context) error {
	ended := fmt.Sprintf("%s; ! pgrep -f '^%s .*%s%d'", secondserver.Remove, secondserver.First, secondserver.PortFlag, secondserver.Port)
	return poll.Until(ctx, start, func(ctx context.Context) error {
		if _, err := w.Cluster.Exec(ctx, w.controlPlane(), "sh", "-c", ended); err != nil {
			return fmt.Errorf("the second API server has not ended: %w", err)
		}
		return nil
	})
}

// skew runs the specs with the gate on in the API server, and kubelets of older minors on the workers.
func (w *Walker) skew(ctx context.Context, r *progress.Reporter) error {
	w.Walk.Skew = map[string][]conformance.Row{}
	for _, older := range w.Older {
		err := w.swapped(ctx, r, w.nodes[1:], []node.Build{older}, func() (err error) {
			w.Walk.Skew[older.Version], err = w.specs(ctx, "kubelet-"+older.Version, r)
			return err
		})
		if err := errors.Join(err, w.Save()); err != nil {
			return err
		}
	}
	var err error
	w.starts, err = w.restarts(ctx) // what follows is not to blame for these
	return err
}

// upAndDown puts the previous minor's kubelets and then its API server under the stored objects, and
// goes back. Whether an object is written to matters while that API server serves.
func (w *Walker) upAndDown(ctx context.Context, objects []stored, r *progress.Reporter) error {
	if len(w.Before) == 0 {
		return nil
	}
	w.Walk.OlderRelease = w.Before[0].Version
	err := w.swapped(ctx, r, w.nodes[1:], w.Before[:1], func() error {
		objects, err := w.there(ctx, objects)
		if err != nil {
			return err
		}
		if err := w.swapped(ctx, r, w.nodes[:1], w.Before, func() (err error) {
			w.Walk.Older, err = w.changed(ctx, objects)
			return err
		}); err != nil {
			return err
		}
		return w.back(ctx, w.Walk.Older, objects)
	})
	if err != nil {
		return err
	}
	return w.restarted(ctx, w.Walk.Older)
}

// swapped runs f while nodes, the last one first, run these builds, and undoes that. A gate that a build does not
// know is left out.
func (w *Walker) swapped(ctx context.Context, r *progress.Reporter, nodes []cluster.Node, builds []node.Build, f func() error) (err error) {
	defer func() { err = errors.Join(err, w.undo(context.WithoutCancel(ctx), nodes, r)) }()
	for _, n := range slices.Backward(nodes) {
		for _, b := range builds {
			if _, err := node.Swap(ctx, w.Cluster, n.Name, b, nil, r); err != nil {
				return err
			}
		}
	}
	return f()
}
