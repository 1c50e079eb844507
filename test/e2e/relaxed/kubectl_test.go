package relaxed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

var _ = describe("kubectl warns of a special name and lets the API server decide:", func(f *framework.Framework) {
	f.It("set env", func(ctx context.Context) {
		client := f.ClientSet.AppsV1().Deployments(f.Namespace.Name)
		deployment, err := client.Create(ctx, deploymentOf(named("OTHER")), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(suite.RunKubectl(ctx, setEnv(f, deployment.Name)...)).To(warnOf(story))
		deployment, err = client.Get(ctx, deployment.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(deployment.Spec.Template.Spec.Containers[0].Env).To(gomega.ContainElement(v1.EnvVar{Name: story, Value: "Debug"}))
	})

	f.It("run --env", func(ctx context.Context) {
		text := suite.RunKubectl(ctx, "run", consumer, "--namespace", f.Namespace.Name, "--restart=Never",
			"--image", images.Envdump, "--image-pull-policy=Never", "--env", story+"=Debug")

		gomega.Expect(text).To(warnOf(story))
		pods.Await(ctx, f, consumer, "success", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
		gomega.Expect(seen(ctx, f, consumer)).To(gomega.HaveKeyWithValue(story, "Debug"))
	})

	f.It("create configmap --from-env-file", func(ctx context.Context) {
		file := filepath.Join(ginkgo.GinkgoT().TempDir(), "file.env")
		framework.ExpectNoError(os.WriteFile(file, []byte("1ST=first\nPLAIN=plain\n"), 0o600))

		text := suite.RunKubectl(ctx, "create", "configmap", source, "--namespace", f.Namespace.Name, "--from-env-file", file)
		gomega.Expect(text).To(gomega.And(warnOf("1ST"), gomega.Not(warnOf("PLAIN"))))
		configMap, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Get(ctx, source, metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(configMap.Data).To(gomega.Equal(map[string]string{"1ST": "first", "PLAIN": "plain"}))
	})

	f.It("create secret generic --from-env-file", func(ctx context.Context) {
		file := filepath.Join(ginkgo.GinkgoT().TempDir(), "file.env")
		framework.ExpectNoError(os.WriteFile(file, []byte("1ST=first\nPLAIN=plain\n"), 0o600))

		text := suite.RunKubectl(ctx, "create", "secret", "generic", source, "--namespace", f.Namespace.Name, "--from-env-file", file)
		gomega.Expect(text).To(gomega.And(warnOf("1ST"), gomega.Not(warnOf("PLAIN"))))
		secret, err := f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Get(ctx, source, metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(secret.Data).To(gomega.Equal(map[string][]byte{"1ST": []byte("first"), "PLAIN": []byte("plain")}))
	})
})

var _ = describeIf(components.RequireGateOff, "with the gate off", func(f *framework.Framework) {
	f.It("the API server refuses what kubectl has warned of", func(ctx context.Context) {
		deployment, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Create(ctx, deploymentOf(named("OTHER")), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		text, err := suite.TryKubectl(ctx, setEnv(f, deployment.Name)...)
		gomega.Expect(err).To(gomega.HaveOccurred())
		gomega.Expect(text).To(gomega.And(warnOf(story), gomega.ContainSubstring("spec.template.spec.containers[0].env[2].name: Invalid value")))
	})
})

func setEnv(f *framework.Framework, deployment string) []string {
	return []string{"set", "env", "deployment/" + deployment, "--namespace", f.Namespace.Name, story + "=Debug"}
}

// warnOf is kubectl's warning of a name.
func warnOf(name string) gomega.OmegaMatcher {
	return gomega.ContainSubstring(fmt.Sprintf("Warning: %q can be the name of an environment variable only in a cluster with the feature gate %s", name, gate))
}
