package kubelet

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/expansion"
)

// newUnexpandedReferences returns what collects the references that one start of
// the container leaves unexpanded, for one event on the pod. It returns nil, which
// collects nothing, if the feature is disabled.
func (kl *Kubelet) newUnexpandedReferences(ctx context.Context, pod *v1.Pod, container *v1.Container) *expansion.UnexpandedReferences {
	if !utilfeature.DefaultFeatureGate.Enabled(features.VariableExpansionEvents) {
		return nil
	}
	ref, err := kubecontainer.GenerateContainerRef(pod, container)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Couldn't make a ref to pod", "pod", klog.KObj(pod), "containerName", container.Name)
		return nil
	}
	return expansion.NewUnexpandedReferences(container.Name, expansion.ObjectEventRecorderFor(ref, kl.recorder))
}
