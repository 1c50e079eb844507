package pods

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"
)

// Nudge makes the kubelet look at the pod now, as it does after every change of a pod,
// rather than at the end of its back-off of ten seconds and more. What it finds is the
// same; specs only need not wait for it. It has no effect on a mirror pod.
func Nudge(ctx context.Context, f *framework.Framework, pod string) {
	ginkgo.GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"podenv.dev/nudged":%q}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	framework.ExpectNoError(err, "annotate pod %s", pod)
}
