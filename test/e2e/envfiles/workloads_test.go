package envfiles

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a Deployment", func(f *framework.Framework) {
	f.It("gives every replica the variables of the file that its own init container wrote", func(ctx context.Context) {
		writer := runs("setup-envfile", echo("OWNER=$POD")+" > /data/config.env")
		writer.Env = []v1.EnvVar{{Name: "POD", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		server := pods.Dumps(consumer, from("OWNER", "config.env", "OWNER"))
		server.Args = []string{"serve"}
		deployment := deploymentOf("per-pod", newPod("", []v1.Container{writer}, server))
		deployment.Spec.Replicas = ptr.To(int32(2))
		_, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Create(ctx, deployment, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		get := framework.GetObject(f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Get, deployment.Name, metav1.GetOptions{})
		gomega.Eventually(ctx, get).WithTimeout(f.Timeouts.PodStartShort).Should(
			gomega.HaveField("Status.ReadyReplicas", gomega.BeEquivalentTo(2)))
		replicas, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{
			LabelSelector: metav1.FormatLabelSelector(deployment.Spec.Selector),
		})
		framework.ExpectNoError(err)
		gomega.Expect(replicas.Items).To(gomega.HaveLen(2))
		for _, replica := range replicas.Items {
			gomega.Expect(pods.Env(ctx, f, replica.Name, consumer)).To(gomega.HaveKeyWithValue("OWNER", replica.Name))
		}
	})
})
