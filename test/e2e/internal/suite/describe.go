package suite

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
)

// Shows returns the labels of specs that show rows of a document of featuregates.
func Shows(document string, rows ...string) (labels ginkgo.Labels) {
	for _, row := range rows {
		labels = append(labels, featuregates.Row(document, row))
	}
	return labels
}

// Suite is what the specs of one suite share.
type Suite struct {
	subject, gate, namespace string
	feature                  framework.Feature
}

// For is the suite about subject, which is behind the feature gate called gate. The names
// of its namespaces begin with namespace.
func For(subject, gate, namespace string) Suite {
	return Suite{subject: subject, gate: gate, namespace: namespace, feature: framework.ValidFeatures.Add(framework.Feature(gate))}
}

// Describe declares the specs of a theme. precondition, which gets the gate, may skip them. The
// gate's label is a plain one: framework.WithFeatureGate would add the gate's stage in the
// framework's own release, which may differ from that in the release under test.
func (s Suite) Describe(precondition func(ctx context.Context, gate string), theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return framework.SIGDescribe("node")(s.subject, framework.WithFeature(s.feature),
		framework.WithLabel("FeatureGate:"+s.gate), theme, slices.Concat(labels...), func() {
			// Ahead of the framework's own BeforeEach, which makes a namespace.
			ginkgo.BeforeEach(func(ctx context.Context) { precondition(ctx, s.gate) })
			f := framework.NewDefaultFramework(s.namespace)
			f.NamespacePodSecurityLevel = admissionapi.LevelBaseline
			body(f)
		})
}
