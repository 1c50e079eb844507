package gates

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
)

// RequireInKubelets is Require for a gate that only kubelets act on: what it is in the
// API server does not matter.
func RequireInKubelets(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	require(ctx, gate, gate+" in kubelets", missingInKubelets)
}

// RequireOffInKubelets skips the running spec where a node that takes pods has a
// kubelet with the gate on. A kubelet that has no such gate has it off.
func RequireOffInKubelets(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	client := newClient()
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, node := range nodes.Items {
		if !TakesPods(node) {
			continue
		}
		state, err := OfKubelet(ctx, client, node.Name, gate)
		framework.ExpectNoError(err)
		if state == On {
			ginkgo.Skip(fmt.Sprintf("the gate %s is on in the kubelet of node %s", gate, node.Name))
		}
	}
}
