package upgrade

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
)

// controllers are those without which no workload becomes what is asked for, and the ports
// where they serve their health, on the node itself.
var controllers = map[string]int{"kube-controller-manager": 10257, "kube-scheduler": 10259}

// refreshed ends a controller that has been there for longer than the API server, and
// fails until one that has not is healthy.
const refreshed = `
age() { ps -o etimes= -p "$(pidof -s "$1")"; }
if [ "$(age %[1]s)" -ge "$(age kube-apiserver)" ]; then
	pkill --full '^%[1]s '
	exit 1
fi
curl --silent --show-error --fail --insecure https://127.0.0.1:%[2]d/healthz`

// refreshControllers has the controllers see the cluster as it is, should the API server
// have been away. client-go lists again what it watches only after a back-off of up to a
// minute, and each kind of object after one of its own. Until then the scheduler puts pods
// on a node that is cordoned; and a pod that was created and deleted meanwhile the
// controller manager awaits for five minutes, before it creates another.
func refreshControllers(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	node := controlPlaneNode(ctx, f)
	for name, port := range controllers {
		gomega.Eventually(ctx, func(ctx context.Context) error {
			_, err := node.TryRun(ctx, fmt.Sprintf(refreshed, name, port))
			return err
		}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed(), "%s", name)
	}
}
