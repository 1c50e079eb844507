package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// elects tells whether the component's instances elect a leader.
func (s *staticSwap) elects() bool { return s.component != "kube-apiserver" && s.component != "etcd" }

// holder is who holds the lease that the component's leader has; empty where it
// elects none.
func (s *staticSwap) holder(ctx context.Context, client kubernetes.Interface) (string, error) {
	if !s.elects() {
		return "", nil
	}
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, s.component, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the lease of %s: %w", s.component, err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, ""), nil
}

// leads checks that somebody leads who did not before. The lease of a leader that is
// gone, and the one process that runs is another, is released for it: not every
// component does so when it ends, and the next leader would wait until it expires.
func (s *staticSwap) leads(ctx context.Context, client kubernetes.Interface) error {
	leases := client.CoordinationV1().Leases(metav1.NamespaceSystem)
	lease, err := leases.Get(ctx, s.component, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the lease of %s: %w", s.component, err)
	}
	switch holder := ptr.Deref(lease.Spec.HolderIdentity, ""); {
	case holder == "":
		return fmt.Errorf("%s to elect a leader", s.component)
	case holder != s.leader:
		return nil
	case len(s.nodes) > 1:
		return fmt.Errorf("%s to elect another leader than %s", s.component, holder)
	}
	lease.Spec.HolderIdentity = ptr.To("")
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(1))
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("releasing the lease of the old %s: %w", s.component, err)
	}
	return fmt.Errorf("%s to elect a leader", s.component)
}
