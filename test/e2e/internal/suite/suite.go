// Package suite is what the suites under test/e2e share: flags, the checks of the cluster
// before the first spec, the labels of specs, and the reports.
package suite

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/options"
)

// Main is a suite's TestMain: it reads the flags and runs the tests.
func Main(m *testing.M) {
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	nodes.Options = options.Options{Walks: 1, Starts: 50, Kubectl: os.Getenv("PODENV_KUBECTL")}
	nodes.Options.AddFlags(flag.CommandLine)

	// The framework falls back to $KUBECONFIG. A plain `go test ./...` must never create pods on
	// the user's current cluster.
	framework.TestContext.KubeConfig = ""
	flag.Parse()
	components.RequiredGates = nodes.Options.RequireGates
	os.Exit(m.Run())
}

// Run runs the specs of the suite called name. Without --kubeconfig it only checks
// that the specs are well formed, and skips the test.
func Run(t *testing.T, name string) {
	gomega.RegisterFailHandler(framework.Fail)
	reportFailures()
	if nodes.Options.JUnit != "" {
		ginkgo.ReportAfterSuite("write the JUnit file", writeJUnit)
	}
	if nodes.Options.SpecTimeout > 0 {
		ginkgo.AddTreeConstructionNodeArgsTransformer(limitSpec) // before the bodies of containers run
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	if framework.TestContext.KubeConfig == "" {
		t.Skip("this suite needs a cluster: run it with `podenv e2e --kubeconfig FILE`")
	}
	// Not framework.CreateGinkgoConfig: by default it skips every spec with a
	// [Feature:…] label, and such specs are what these suites are for.
	suiteConfig, reporterConfig := ginkgo.GinkgoConfiguration()
	suiteConfig.RandomizeAllSpecs = true // no spec may depend on another
	ginkgo.RunSpecs(t, name, suiteConfig, reporterConfig)
}

// limitSpec ends the context of a spec after --podenv.spec-timeout, and the spec with it.
func limitSpec(node types.NodeType, _ ginkgo.Offset, text string, args []any) (string, []any, []error) {
	takesContext := slices.ContainsFunc(args, func(arg any) bool {
		body := reflect.TypeOf(arg)
		return body != nil && body.Kind() == reflect.Func && body.NumIn() == 1
	})
	if node.Is(types.NodeTypeIt) && takesContext {
		args = append(args, ginkgo.SpecTimeout(nodes.Options.SpecTimeout))
	}
	return text, args, nil
}

// Kubectl returns the kubectl of the series under test. It skips the running spec if there is none.
func Kubectl() string {
	ginkgo.GinkgoHelper()
	if nodes.Options.Kubectl == "" {
		ginkgo.Skip("no kubectl of the series under test: give --podenv.kubectl or PODENV_KUBECTL")
	}
	return nodes.Options.Kubectl
}

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

// RunKubectl runs the kubectl of the series under test on the cluster and returns its output.
// It skips the running spec if there is no kubectl.
func RunKubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	out, err := TryKubectl(ctx, args...)
	framework.ExpectNoError(err, "kubectl %q: %s", args, out)
	return out
}

// TryKubectl is RunKubectl for a command that may fail.
func TryKubectl(ctx context.Context, args ...string) (string, error) {
	ginkgo.GinkgoHelper()
	args = append([]string{"--kubeconfig", framework.TestContext.KubeConfig}, args...)
	if framework.TestContext.KubeContext != "" {
		args = append([]string{"--context", framework.TestContext.KubeContext}, args...)
	}
	out, err := exec.CommandContext(ctx, Kubectl(), args...).CombinedOutput()
	return string(out), err
}
