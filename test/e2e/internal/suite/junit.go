package suite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/nodes"
)

// writeJUnit writes report to the file of --podenv.junit. Ginkgo's own --junit-report counts
// specs that were not selected as skipped. Here every test case is a spec that ran, one that
// says why it was skipped, or a failure outside of specs.
func writeJUnit(report ginkgo.Report) {
	report.SpecReports = slices.DeleteFunc(slices.Clone(report.SpecReports), func(spec types.SpecReport) bool {
		return !isTestCase(spec)
	})
	for i, spec := range report.SpecReports {
		if spec.FullText() == "" {
			report.SpecReports[i].LeafNodeText = spec.LeafNodeType.String()
		}
	}
	framework.ExpectNoError(os.MkdirAll(filepath.Dir(nodes.Options.JUnit), 0o755))
	framework.ExpectNoError(reporters.GenerateJSONReport(report, strings.TrimSuffix(nodes.Options.JUnit, ".xml")+".json")) // for podenv's page
	framework.ExpectNoError(reporters.GenerateJUnitReportWithConfig(report, nodes.Options.JUnit, reporters.JunitReportConfig{
		OmitLeafNodeType: true,
		OmitSpecLabels:   true, // the framework put them into the names already
	}))
}

func isTestCase(spec types.SpecReport) bool {
	if spec.LeafNodeType == types.NodeTypeSynchronizedBeforeSuite && spec.ParallelProcess > 1 {
		return false // it only says that process 1 failed, which has a report of its own
	}
	if spec.Failed() {
		return true
	}
	if spec.LeafNodeType != types.NodeTypeIt {
		return false
	}
	// --focus and --label-filter leave specs skipped without a message.
	return spec.State != types.SpecStateSkipped || spec.Failure.Message != ""
}

// Report adds text to the report that podenv shows with the results: a file next to the JUnit
// file, with the extension .md.
func Report(text string) {
	ginkgo.GinkgoHelper()
	ginkgo.GinkgoWriter.Println(text)
	if nodes.Options.JUnit == "" {
		return
	}
	framework.ExpectNoError(os.MkdirAll(filepath.Dir(nodes.Options.JUnit), 0o755))
	file, err := os.OpenFile(strings.TrimSuffix(nodes.Options.JUnit, ".xml")+".md", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	framework.ExpectNoError(err)
	_, err = file.WriteString(text + "\n")
	framework.ExpectNoError(errors.Join(err, file.Close()))
}
