package node

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	imageutils "k8s.io/kubernetes/test/utils/image"
)

var (
	showImage = flag.Bool("image", false, "print the image that the pods run, and no more")
	results   = flag.String("results", "", "`file` to write the results to, as JUnit XML")
)

func TestMain(m *testing.M) {
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	if *showImage {
		fmt.Println(imageutils.GetE2EImage(imageutils.BusyBox))
		os.Exit(0)
	}
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestFileKeys(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.LabelFilter = "FeatureGate:EnvFiles"
	ginkgo.ReportAfterSuite("write the results", func(r ginkgo.Report) {
		// Leave out the specs of other features.
		r.SpecReports = slices.DeleteFunc(r.SpecReports, func(spec types.SpecReport) bool { return spec.State == types.SpecStateSkipped })
		framework.ExpectNoError(reporters.GenerateJUnitReportWithConfig(r, *results, reporters.JunitReportConfig{OmitSuiteSetupNodes: true}))
	})
	ginkgo.RunSpecs(t, "EnvFiles of the release", suite, reporter)
}
