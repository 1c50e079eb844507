// Package policies starts the admission plugins of policies for tests, as an API server does.
package policies

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
)

// Plugin is an admission plugin that wants what an API server gives to those of policies.
type Plugin interface {
	admission.Interface
	admission.InitializationValidator
}

// Start runs plugin, which gets the policies and namespaces of client, until the test ends. A policy comes
// into force some time later.
func Start(tb testing.TB, plugin Plugin, client kubernetes.Interface) {
	tb.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	initializer.New(client, dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()), factory,
		authorizerfactory.NewAlwaysDenyAuthorizer(), utilfeature.DefaultFeatureGate, compatibility.DefaultBuildEffectiveVersion(),
		tb.Context().Done(), meta.NewDefaultRESTMapper([]schema.GroupVersion{admissionv1.SchemeGroupVersion})).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		tb.Fatal(err)
	}
	factory.Start(tb.Context().Done())
	factory.WaitForCacheSync(tb.Context().Done())
}
