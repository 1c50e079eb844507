package expansion

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

var _ = describeIf(whateverTheGate, "with enableServiceLinks: false", func(f *framework.Framework) {
	f.It("there are the variables of the API server's service alone, and a reference to those of another stays", func(ctx context.Context) {
		_, node := createService(ctx, f, "db", "DB_SERVICE_HOST")
		pod := pods.Once("no-links", dumps(literal("DB", "$(DB_SERVICE_HOST)"), literal("API", "$(KUBERNETES_SERVICE_PORT)")))
		pod.Spec.NodeName = node
		pod.Spec.EnableServiceLinks = ptr.To(false)
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(map[string]string{"DB": "$(DB_SERVICE_HOST)", "API": "443"}))
		gomega.Expect(pods.Env(ctx, f, pod.Name, consumer)).To(gomega.HaveKey("KUBERNETES_SERVICE_HOST"))
	})
})

// createService creates a Service on port 8080, and returns it with a node whose
// kubelet knows it: a container that starts there has its variables, of which
// hostVariable is one.
func createService(ctx context.Context, f *framework.Framework, name, hostVariable string) (service *v1.Service, node string) {
	ginkgo.GinkgoHelper()
	service, err := f.ClientSet.CoreV1().Services(f.Namespace.Name).Create(ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 8080}}},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	chosen, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
	framework.ExpectNoError(err)

	// A container that is restarted until the kubelet has heard of the service.
	probe := pods.Once("knows-"+name, v1.Container{
		Name: consumer, Image: images.Busybox, ImagePullPolicy: v1.PullNever,
		Command: []string{"sh", "-c", `test -n "$` + hostVariable + `"`},
	})
	probe.Spec.RestartPolicy = v1.RestartPolicyOnFailure
	pods.RunToEnd(ctx, f, onNodeWithServices(probe, chosen.Name))
	return service, chosen.Name
}

// onNodeWithServices makes pod run on node, with the variables of services.
func onNodeWithServices(pod *v1.Pod, node string) *v1.Pod {
	pod.Spec.NodeName = node
	pod.Spec.EnableServiceLinks = ptr.To(true)
	return pod
}
