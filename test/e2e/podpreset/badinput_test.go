package podpreset

import (
	"context"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("bad input", func(f *framework.Framework) {
	f.It("a preset of 1 MB is stored, and a pod that it would make too large goes without it and says so", func(ctx context.Context) {
		text := "metadata: {name: large}\nspec:\n" + selector + "  env:\n  - {name: A, value: '" + strings.Repeat("x", 1_000_000) + "'}\n"
		create(ctx, f, text)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) { pod.Spec.Containers = append(pod.Spec.Containers, pods.Dumps("second")) }))
		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "large"))
		for _, c := range pod.Spec.Containers {
			gomega.Expect(c.Env).To(gomega.BeEmpty(), c.Name)
		}
		expectConflict(ctx, f, pod, "large", "Conflict on pod preset. The pod would be too large.")
	})

	f.It("a preset that no request has room for is refused", func(ctx context.Context) {
		err := tryCreate(ctx, f, "metadata: {name: huge}\nspec:\n"+selector+"  env:\n  - {name: A, value: '"+strings.Repeat("x", 4<<20)+"'}\n")
		gomega.Expect(apierrors.IsRequestEntityTooLargeError(err)).To(gomega.BeTrue(), "%.300v", err)
	})

	f.It("a preset that is being deleted is not injected", func(ctx context.Context) {
		create(ctx, f, strings.Replace(allowDatabase, "{name: allow-database}", "{name: allow-database, finalizers: [podenv.dev/keep]}", 1))
		ginkgo.DeferCleanup(func(ctx context.Context) {
			_, err := client(f).Patch(ctx, "allow-database", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			framework.ExpectNoError(err)
		})
		framework.ExpectNoError(client(f).Delete(ctx, "allow-database", metav1.DeleteOptions{}))

		preset, err := client(f).Get(ctx, "allow-database", metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(preset.GetDeletionTimestamp()).NotTo(gomega.BeNil())
		gomega.Eventually(ctx, func(ctx context.Context) map[string]string {
			return envOf(dryRun(ctx, f, website(nil)).Spec.Containers[0])
		}).WithTimeout(30*time.Second).Should(gomega.BeEmpty(), "the admission plugin to see that the preset is being deleted")
	})

	f.It("a selector of expressions may match every pod of the namespace, also one without labels", func(ctx context.Context) {
		framework.ExpectNoError(tryCreate(ctx, f, "metadata: {name: all}\nspec:\n  selector: {matchExpressions: [{key: none, operator: DoesNotExist}]}\n"+variable))
		awaitKnown(ctx, f, "all", nil)
		for _, labels := range []map[string]string{nil, {"any": "label"}} {
			pod := dryRun(ctx, f, website(func(pod *v1.Pod) { pod.Labels = labels }))
			gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.HaveKeyWithValue("A", "1"))
		}
	})

	f.It("a selector with an operator that does not exist, or without values, is refused by its field", func(ctx context.Context) {
		for expression, field := range map[string]string{
			"{key: a, operator: Is, values: [b]}":    "spec.selector.matchExpressions[0].operator",
			"{key: a, operator: In}":                 "spec.selector.matchExpressions[0].values",
			"{key: 'a b', operator: Exists}":         "spec.selector.matchExpressions[0].key",
			"{key: a, operator: Exists, values: []}": "",
		} {
			err := tryCreate(ctx, f, "metadata: {generateName: p-}\nspec:\n  selector: {matchExpressions: ["+expression+"]}\n"+variable)
			if field == "" {
				framework.ExpectNoError(err, expression)
				continue
			}
			gomega.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%s: %v", expression, err)
			gomega.Expect(err.Error()).To(gomega.ContainSubstring(field), expression)
		}
	})

	f.It("the plugin without the API: the API server does not start, and says which flag is missing", func(ctx context.Context) {
		gomega.Expect(startWithPlugin(ctx, f, "--feature-gates=PodPreset=true")).To(gomega.ContainSubstring(
			"the admission plugin PodPreset needs the API settings.k8s.io/v1alpha1: add --runtime-config=settings.k8s.io/v1alpha1=true, or take PodPreset out of --enable-admission-plugins"))
		gomega.Expect(startWithPlugin(ctx, f, "--runtime-config=settings.k8s.io/v1alpha1=true")).To(gomega.ContainSubstring("add --feature-gates=PodPreset=true, or"))
	})
})

var _ = specs.Describe(components.RequireGateOff, "with the gate off in the API server,", func(f *framework.Framework) {
	f.It("there is no API, and a pod is created as its author wrote it", func(ctx context.Context) {
		_, err := f.ClientSet.Discovery().ServerResourcesForGroupVersion(presets.GroupVersion().String())
		gomega.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v", err)
		groups, err := f.ClientSet.Discovery().ServerGroups()
		framework.ExpectNoError(err)
		gomega.Expect(groups.Groups).NotTo(gomega.ContainElement(gomega.HaveField("Name", presets.Group)))
		paths, err := f.ClientSet.Discovery().OpenAPIV3().Paths()
		framework.ExpectNoError(err)
		gomega.Expect(paths).NotTo(gomega.HaveKey("apis/" + presets.GroupVersion().String()))
		err = tryCreate(ctx, f, allowDatabase)
		gomega.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v", err)

		pod := pods.RunToEnd(ctx, f, website(nil))
		gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
		gomega.Expect(pods.Env(ctx, f, pod.Name, "website")).NotTo(gomega.HaveKey("DB_PORT"))
	})

	f.It("an API server with the plugin does not start, and says which flags are missing", func(ctx context.Context) {
		gomega.Expect(startWithPlugin(ctx, f)).To(gomega.ContainSubstring(
			"add --feature-gates=PodPreset=true and --runtime-config=settings.k8s.io/v1alpha1=true, or take PodPreset out of --enable-admission-plugins"))
	})
})

// startWithPlugin tries to start a second API server in the container of the cluster's own,
// with the admission plugin and flags, and returns why it does not start.
func startWithPlugin(ctx context.Context, f *framework.Framework, flags ...string) string {
	ginkgo.GinkgoHelper()
	var servers *v1.PodList
	// The kubelet makes the pod anew some time after a restart.
	gomega.Eventually(ctx, func(ctx context.Context) (_ []v1.Pod, err error) {
		servers, err = f.ClientSet.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
		return servers.Items, err
	}).WithTimeout(2*time.Minute).ShouldNot(gomega.BeEmpty(), "API servers that run as pods")
	args := append([]string{"exec", "--namespace", metav1.NamespaceSystem, servers.Items[0].Name, "--", "kube-apiserver",
		"--enable-admission-plugins=PodPreset", "--etcd-servers=http://127.0.0.1:1", "--service-cluster-ip-range=10.96.0.0/16", "--cert-dir=/tmp"}, flags...)
	out, err := suite.TryKubectl(ctx, args...)
	gomega.Expect(err).To(gomega.HaveOccurred(), "it starts: %s", out)
	return out
}
