package build

import (
	"fmt"
	"slices"
	"strings"
)

// Components are the Kubernetes programs that Binaries compiles, each from cmd/<name>
// of the tree.
var Components = []string{
	"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm", "kubectl",
}

// ImageComponents are the Components that run as containers. Images packs them.
var ImageComponents = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

// selected returns components in the order of Components, without duplicates, or all
// Components if none is given.
func selected(components []string) ([]string, error) {
	if len(components) == 0 {
		return Components, nil
	}
	for _, c := range components {
		if !slices.Contains(Components, c) {
			return nil, fmt.Errorf("unknown component %q: choose from %s", c, strings.Join(Components, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(Components), func(c string) bool { return !slices.Contains(components, c) }), nil
}
