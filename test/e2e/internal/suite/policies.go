package suite

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"
)

// PolicyVersion returns the newest version of ValidatingAdmissionPolicy that the API server serves. It
// skips the spec if there is none, as in v1.29 by default.
func PolicyVersion(f *framework.Framework) schema.GroupVersion {
	ginkgo.GinkgoHelper()
	for _, version := range []string{"v1", "v1beta1"} {
		in := schema.GroupVersion{Group: admissionv1.GroupName, Version: version}
		served, err := discovery.IsResourceEnabled(f.ClientSet.Discovery(), in.WithResource("validatingadmissionpolicies"))
		framework.ExpectNoError(err)
		if served {
			return in
		}
	}
	ginkgo.Skip("the API server does not serve ValidatingAdmissionPolicy")
	return schema.GroupVersion{}
}

// CreatePolicy creates a policy and its binding in the version that PolicyVersion returned, and deletes them
// at the end of the spec. It returns the client for policies.
func CreatePolicy(ctx context.Context, f *framework.Framework, version schema.GroupVersion, policy *admissionv1.ValidatingAdmissionPolicy, binding *admissionv1.ValidatingAdmissionPolicyBinding) dynamic.ResourceInterface {
	ginkgo.GinkgoHelper()
	policies := f.DynamicClient.Resource(version.WithResource("validatingadmissionpolicies"))
	createAs(ctx, policies, version.WithKind("ValidatingAdmissionPolicy"), policy)
	createAs(ctx, f.DynamicClient.Resource(version.WithResource("validatingadmissionpolicybindings")), version.WithKind("ValidatingAdmissionPolicyBinding"), binding)
	return policies
}

func createAs(ctx context.Context, client dynamic.ResourceInterface, kind schema.GroupVersionKind, object metav1.Object) {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	framework.ExpectNoError(err)
	in := &unstructured.Unstructured{Object: content}
	in.SetGroupVersionKind(kind)
	_, err = client.Create(ctx, in, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(framework.IgnoreNotFound(client.Delete), object.GetName(), metav1.DeleteOptions{})
}
