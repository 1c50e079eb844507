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
	Hidden  []string `json:"hidden,omitempty"`  // fields that the one with the gate off did not show at last
	Lost    []string `json:"lost,omitempty"`    // fields that the other one did not show then
	Refused []string `json:"refused,omitempty"` // reasons for refusing to create an object, or to update its label
}

// start is how long an API server may take to start or to end.
const start = 3 * time.Minute

// disagree starts a second API server, with the gate off, beside the first. Each object is created by
// one of them, and written to by both in turn, as by clients behind one address.
func (w *Walker) disagree(ctx context.Context, step *progress.Step) (err error) {
	if !w.Walk.Gate.ofAPIServer() {
		return nil
	}
	defer func() { err = errors.Join(err, w.endSecond(context.WithoutCancel(ctx))) }()
	off, err := w.second(ctx, step)
	if err != nil {
		return err
	}
	if w.Walk.Servers, err = w.inTurn(ctx, off, step); err == nil {
		_, err = w.settled(ctx, "servers-")
	}
	return err
}

// inTurn stores objects and writes to them by the first API server and by off, the one with the gate off.
func (w *Walker) inTurn(ctx context.Context, off dynamic.Interface, step *progress.Step) (*Servers, error) {
	found := &Servers{}
	for i, p := range w.probes {
		if !p.storable() {
			continue
		}
		step.Now("%s %d of %d", p, i+1, len(w.probes))
		for _, creator := range []dynamic.Interface{w.objects, off} {
			s, err := w.create(ctx, creator, p, fmt.Sprintf("servers-%d", found.Objects))
			if why := refusal(err); why != "" { // also because of a quota or a port
				found.Refused = add(found.Refused, p.String()+", created: "+strings.ReplaceAll(why, s.name, "NAME"))
				continue
			}
			if err != nil {
				return nil, err
			}
			found.Objects++
			for turn, server := range []dynamic.Interface{off, w.objects, off, w.objects} {
				refused, err := s.relabel(ctx, server, strconv.Itoa(turn))
				if err != nil {
					return nil, err
				}
				found.Refused = add(found.Refused, refused...)
			}
			for to, server := range map[*[]string]dynamic.Interface{&found.Hidden: off, &found.Lost: w.objects} {
				differs, _, err := s.differing(ctx, server)
				if err != nil {
					return nil, err
				}
				*to = add(*to, differs...)
			}
		}
	}
	return found, nil
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
func (w *Walker) skew(ctx context.Context, _ *progress.Step) (all error) {
	w.Walk.Skew = map[string][]conformance.Row{}
	for _, older := range w.Older {
		err := w.swapped(ctx, w.nodes[1:], []node.Build{older}, func() error {
			var rows []conformance.Row
			err := w.specs(ctx, &rows, "kubelet-"+older.Version)
			w.Walk.Skew[older.Version] = rows
			return err
		})
		if all = errors.Join(all, err, w.Save()); ctx.Err() != nil {
			break
		}
	}
	return all
}

// upAndDown puts the previous minor's kubelets and then its API server under the stored objects, and
// goes back. Whether an object is written to matters while that API server serves.
func (w *Walker) upAndDown(ctx context.Context, _ *progress.Step) error {
	if len(w.Before) == 0 {
		return nil
	}
	w.Walk.OlderRelease = w.Before[0].Version
	err := w.swapped(ctx, w.nodes[1:], w.Before[:1], func() error {
		if err := w.there(ctx, nil); err != nil {
			return err
		}
		if err := w.swapped(ctx, w.nodes[:1], w.Before, func() (err error) {
			w.Walk.Older, err = w.changed(ctx)
			return err
		}); err != nil {
			return err
		}
		return w.back(ctx, w.Walk.Older)
	})
	if err != nil {
		return err
	}
	return w.restarted(ctx, w.Walk.Older)
}

// swapped runs f while nodes, the last one first, run these builds, and undoes that. A gate that a build does not
// know is left out.
func (w *Walker) swapped(ctx context.Context, nodes []cluster.Node, builds []node.Build, f func() error) (err error) {
	defer func() { err = errors.Join(err, w.undo(context.WithoutCancel(ctx), nodes)) }()
	for _, n := range slices.Backward(nodes) {
		for _, b := range builds {
			if _, err := node.Swap(ctx, w.Cluster, n.Name, b, nil, w.reporter); err != nil {
				return err
			}
		}
	}
	return f()
}
