package manifests

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"podenv.dev/test/policies"
)

// chosen is the namespace that has the label.
const chosen = "chosen"

// apiServer is the admission plugin of an API server that has the policy and two
// namespaces.
type apiServer struct {
	plugin  *validating.Plugin
	objects admission.ObjectInterfaces
}

func newAPIServer(t testing.TB) *apiServer {
	t.Helper()
	policy, binding := mustPolicy(t)
	client := fake.NewClientset(policy, binding,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: chosen, Labels: binding.Spec.MatchResources.NamespaceSelector.MatchLabels}},
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	policies.Start(t, plugin, client)
	s := &apiServer{plugin, admission.NewObjectInterfacesFromScheme(scheme.Scheme)}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		err := s.create("pods", objectOf("pods", chosen, podOf(v1.EnvVar{Name: special})))
		return err != nil && strings.Contains(err.Error(), special), nil
	}); err != nil {
		t.Fatalf("the policy never came into force: %v", err)
	}
	return s
}

func (s *apiServer) create(resource string, object runtime.Object) error {
	return s.admit(resource, "", admission.Create, object, nil)
}

func (s *apiServer) update(resource, subresource string, object, old runtime.Object) error {
	return s.admit(resource, subresource, admission.Update, object, old)
}

func (s *apiServer) admit(resource, subresource string, operation admission.Operation, object, old runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return err
	}
	return s.plugin.Validate(context.Background(), admission.NewAttributesRecord(object, old, kinds[0], accessor.GetNamespace(), accessor.GetName(),
		kinds[0].GroupVersion().WithResource(resource), subresource, operation, nil, false, &user.DefaultInfo{Name: "somebody"}), s.objects)
}

// mustPolicy is the policy as an API server stores it.
func mustPolicy(t testing.TB) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	policy, binding, err := Policy()
	if err != nil {
		t.Fatal(err)
	}
	legacyscheme.Scheme.Default(policy)
	legacyscheme.Scheme.Default(binding)
	return policy, binding
}
