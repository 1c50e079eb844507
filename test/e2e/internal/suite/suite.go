// Package suite is what the suites under test/e2e share: flags, the checks of the cluster
// before the first spec, the labels of specs, and the reports.
package suite

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
)

// options are the flags that the suites add to those of Kubernetes' e2e framework.
var options struct {
	junit   string
	kubectl string

	specTimeout time.Duration
}

// Starts is how many containers start beside each kind of writer in the suite envfiles.
var Starts int

// Main is a suite's TestMain: it reads the flags and runs the tests.
func Main(m *testing.M) {
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.StringVar(&options.junit, "podenv.junit", "", "`file` to write the results of the specs to, as JUnit XML")
	flag.StringVar(&options.kubectl, "podenv.kubectl", os.Getenv("PODENV_KUBECTL"), "kubectl `binary` of the series under test; specs of kubectl are skipped without it")
	flag.StringVar(&nodes.Options.Podenv, "podenv.cli", "", "podenv `binary` for specs that operate nodes; they are skipped without it")
	flag.StringVar(&nodes.Options.Cluster, "podenv.cluster", "", "`name` that podenv has for the cluster")
	flag.StringVar(&nodes.Options.Minor, "podenv.minor", "", "`minor` of the cluster, such as v1.33, for specs that operate nodes")
	flag.Func("podenv.older", "comma-separated older `minors`, whose stock kubelets specs that operate nodes go to", list(&nodes.Options.Older))
	flag.Func("podenv.newer", "comma-separated newer `minors` that the cluster goes on to, one after the other; their specs are skipped without them", list(&nodes.Options.Newer))
	flag.IntVar(&nodes.Options.Walks, "podenv.walks", 1, "how `often` the soak takes the kubelet up and down")
	flag.DurationVar(&options.specTimeout, "podenv.spec-timeout", 0, "how `long` each spec may take; for ever if 0")
	flag.IntVar(&Starts, "podenv.starts", 50, "how `many` containers start beside each kind of writer of an env file")
	flag.Func("podenv.require-gates", "comma-separated `gates` that must be on: specs that need one fail, rather than being skipped, where it is off", list(&components.RequiredGates))

	// The framework falls back to $KUBECONFIG. A plain `go test ./...` must never create pods on
	// the user's current cluster.
	framework.TestContext.KubeConfig = ""
	flag.Parse()
	os.Exit(m.Run())
}

// list reads the value of a flag into items.
func list(items *[]string) func(string) error {
	return func(value string) error {
		*items = strings.FieldsFunc(value, func(c rune) bool { return c == ',' })
		return nil
	}
}

// Run runs the specs of the suite called name. Without --kubeconfig it only checks
// that the specs are well formed, and skips the test.
func Run(t *testing.T, name string) {
	gomega.RegisterFailHandler(framework.Fail)
	reportFailures()
	if options.junit != "" {
		ginkgo.ReportAfterSuite("write the JUnit file", writeJUnit)
	}
	if options.specTimeout > 0 {
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
		args = append(args, ginkgo.SpecTimeout(options.specTimeout))
	}
	return text, args, nil
}

// Kubectl returns the kubectl of the series under test. It skips the running spec if there is
// none.
func Kubectl() string {
	ginkgo.GinkgoHelper()
	if options.kubectl == "" {
		ginkgo.Skip("no kubectl of the series under test: give --podenv.kubectl or PODENV_KUBECTL")
	}
	return options.kubectl
}
