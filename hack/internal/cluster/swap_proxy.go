package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// proxySwap swaps kube-proxy, the pods of a daemon set.
type proxySwap struct {
	*swap
	before, after string // images
}

func (s *proxySwap) running(ctx context.Context, node Node) (string, error) {
	return (&processes{Cluster: s.Cluster}).only(ctx, node.Name, s.component)
}

func (s *proxySwap) put(ctx context.Context) (err error) {
	s.after, err = s.putImage(ctx)
	return err
}

func (s *proxySwap) turn(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	set, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, s.component, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range set.Spec.Template.Spec.Containers {
		if c.Name == s.component {
			s.before = c.Image
		}
	}
	return s.patch(ctx, client, s.after)
}

func (s *proxySwap) back(ctx context.Context) error {
	if s.before == "" {
		return nil // it was never turned
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	return s.patch(ctx, client, s.before)
}

func (s *proxySwap) patch(ctx context.Context, client kubernetes.Interface, image string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]string{"name": s.component, "image": image}},
	}}}})
	if err != nil {
		return err
	}
	_, err = client.AppsV1().DaemonSets(metav1.NamespaceSystem).Patch(ctx, s.component, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (s *proxySwap) serves(ctx context.Context, want state) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	err = poll(ctx, swapTime, func(ctx context.Context) error {
		set, err := client.AppsV1().DaemonSets(metav1.NamespaceSystem).Get(ctx, s.component, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return rolledOut(set)
	})
	if err != nil {
		return err
	}
	return s.each(ctx, func(ctx context.Context, node Node) error {
		seen := &processes{Cluster: s.Cluster}
		return poll(ctx, swapTime, func(ctx context.Context) error {
			have, err := seen.only(ctx, node.Name, s.component)
			if err == nil && have != want.SHA256 {
				err = fmt.Errorf("a %s with SHA-256 %s runs, want %s", s.component, have, want.SHA256)
			}
			return err
		})
	})
}

// rolledOut checks that all pods of a daemon set are of its newest template and run.
func rolledOut(set *appsv1.DaemonSet) error {
	st := set.Status
	if st.ObservedGeneration < set.Generation || st.UpdatedNumberScheduled < st.DesiredNumberScheduled || st.NumberAvailable < st.DesiredNumberScheduled {
		return fmt.Errorf("daemon set %s: of %d pods %d are new and %d available", set.Name, st.DesiredNumberScheduled, st.UpdatedNumberScheduled, st.NumberAvailable)
	}
	return nil
}

func (s *proxySwap) tail(ctx context.Context, node Node) string { return s.containerTail(ctx, node) }
func (s *proxySwap) clean(context.Context) error                { return nil }
func (s *proxySwap) files() []string                            { return nil }

func (s *proxySwap) set(context.Context, Node) (map[string]bool, error) { return nil, nil }
