package relaxed

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/manifests"
)

// The policy of test/manifests, on a cluster whose API server itself allows special
// names.
var _ = describe("where the policy strict-env-names chooses a namespace,", func(f *framework.Framework) {
	var chosen map[string]string // the label that chooses a namespace
	ginkgo.BeforeEach(func(ctx context.Context) {
		chosen = applyPolicy(ctx, f)
	})

	for _, kind := range kinds {
		f.It("a "+kind.name+" with a special name or prefix is refused, in the chosen namespace only", func(ctx context.Context) {
			choose(ctx, f, f.Namespace.Name, chosen)
			other, err := f.CreateNamespace(ctx, "other", nil)
			framework.ExpectNoError(err)
			for _, special := range []string{story, "1ST", " ", `say "hi"`} {
				for _, spec := range []v1.PodSpec{named(special), prefixed(special)} {
					expectRefused(kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, spec), consumer, special)
					framework.ExpectNoError(kind.dryRun(ctx, f.DynamicClient, other.Name, spec), "%q", special)
				}
			}
			for _, plain := range []string{"PLAIN", "a.b-C_1", ".a", "-"} {
				framework.ExpectNoError(kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named(plain)), "%q", plain)
			}
		})
	}

	f.It("an ephemeral container with a special name is refused", func(ctx context.Context) {
		choose(ctx, f, f.Namespace.Name, chosen)

		expectRefused(debug(ctx, f, literal(story)), "debug", story)
	})

	f.It("an object that has a special name already can be updated, and a strict one gets none", func(ctx context.Context) {
		client := f.ClientSet.AppsV1().Deployments(f.Namespace.Name)
		special, err := client.Create(ctx, deploymentOf(named(story)), metav1.CreateOptions{})
		framework.ExpectNoError(err)
		choose(ctx, f, f.Namespace.Name, chosen)
		strict := deploymentOf(named("OTHER"))
		strict.Name = "strict"
		strict, err = client.Create(ctx, strict, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		special.ResourceVersion, strict.ResourceVersion = "", "" // whatever the controller wrote meanwhile
		special.Annotations = map[string]string{"note": "updated"}
		_, err = client.Update(ctx, special, metav1.UpdateOptions{})
		framework.ExpectNoError(err)
		strict.Spec.Template.Spec = special.Spec.Template.Spec
		_, err = client.Update(ctx, strict, metav1.UpdateOptions{})
		expectRefused(err, consumer, story)
	})
})

var _ = describe("where the policy strict-env-names comes to choose a namespace in use,", func(f *framework.Framework) {
	f.It("pods with special names go on, and their controllers cannot replace one that is deleted, until the label is gone", func(ctx context.Context) {
		chosen := applyPolicy(ctx, f)
		deployment := deploymentOf(named(story))
		pods.Quick(&deployment.Spec.Template.Spec)
		deployment.Spec.Template.Spec.Containers[0].Args = []string{"serve"}
		deployment.Spec.Replicas = ptr.To(int32(2))
		_, err := f.ClientSet.AppsV1().Deployments(f.Namespace.Name).Create(ctx, deployment, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		running := awaitRunning(ctx, f, 2)
		choose(ctx, f, f.Namespace.Name, chosen)

		ginkgo.By("deleting one of two pods")
		framework.ExpectNoError(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Delete(ctx, running[0].Name, metav1.DeleteOptions{}))
		owner := metav1.GetControllerOf(&running[0]).Name
		gomega.Eventually(ctx, func(ctx context.Context) []v1.Event { return eventsOf(ctx, f, owner) }).
			WithTimeout(f.Timeouts.PodStart).Should(gomega.ContainElement(gomega.And(
			gomega.HaveField("Reason", "FailedCreate"),
			gomega.HaveField("Message", gomega.ContainSubstring("container '%s': '%s' is no name", consumer, story)))))
		gomega.Expect(awaitRunning(ctx, f, 1)[0].UID).To(gomega.Equal(running[1].UID), "the pod that was not deleted")

		ginkgo.By("taking the label away")
		for key := range chosen {
			_, err := f.ClientSet.CoreV1().Namespaces().Patch(ctx, f.Namespace.Name, types.MergePatchType,
				fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, key), metav1.PatchOptions{})
			framework.ExpectNoError(err)
		}
		awaitRunning(ctx, f, 2)
	})
})

// applyPolicy applies the manifest under a name and a label of the spec's own, so that
// specs can run side by side, and returns the label.
func applyPolicy(ctx context.Context, f *framework.Framework) map[string]string {
	ginkgo.GinkgoHelper()
	version := suite.PolicyVersion(f)
	policy, binding, err := manifests.Policy()
	framework.ExpectNoError(err)
	policy.Name = f.UniqueName
	binding.Name, binding.Spec.PolicyName = f.UniqueName, f.UniqueName
	selector := binding.Spec.MatchResources.NamespaceSelector
	for key := range selector.MatchLabels {
		selector.MatchLabels[key] = f.UniqueName
	}
	client := suite.CreatePolicy(ctx, f, version, policy, binding)

	var checked *admissionv1.TypeChecking
	gomega.Eventually(ctx, func(ctx context.Context) (*admissionv1.TypeChecking, error) {
		object, err := client.Get(ctx, policy.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		var now admissionv1.ValidatingAdmissionPolicy
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &now)
		checked = now.Status.TypeChecking
		return checked, err
	}).WithTimeout(f.Timeouts.PodStartShort).ShouldNot(gomega.BeNil(), "the type check of the policy")
	if version.Version == "v1" { // the check of v1.29 does not know the variables of a policy
		gomega.Expect(checked.ExpressionWarnings).To(gomega.BeEmpty(), "of the type check")
	}
	return selector.MatchLabels
}

// choose gives the namespace the label, and waits until the policy is in force there.
func choose(ctx context.Context, f *framework.Framework, namespace string, label map[string]string) {
	ginkgo.GinkgoHelper()
	for key, value := range label {
		_, err := f.ClientSet.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value), metav1.PatchOptions{})
		framework.ExpectNoError(err)
	}
	gomega.Eventually(ctx, func(ctx context.Context) error {
		return kinds[0].dryRun(ctx, f.DynamicClient, namespace, named(story))
	}).WithTimeout(f.Timeouts.PodStartShort).Should(gomega.MatchError(gomega.ContainSubstring(story)), "the policy to be in force")
}

// expectRefused checks that the policy refuses the name, as validation would.
func expectRefused(err error, container, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("container '%s': '%s' is no name", container, name)))
	gomega.Expect(err.(apierrors.APIStatus).Status().Code).To(gomega.BeEquivalentTo(http.StatusUnprocessableEntity))
}
