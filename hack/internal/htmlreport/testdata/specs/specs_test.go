// Package specs has specs and tests that fail, for the tests of htmlreport, which run them.
package specs

import (
	"os"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"podenv.dev/test/e2e/options"
)

func TestSpecs(t *testing.T) {
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "Tides")
}

var _ = ginkgo.Describe("[sig-node] the tide", func() {
	ginkgo.It("comes in", ginkgo.Label("TEP-1:1"), func() {})
	ginkgo.It("goes out", ginkgo.Label("TEP-1:1"), func() {
		ginkgo.By("looking at the moon")
		ginkgo.By("looking at the sea")
		ginkgo.AddReportEntry("events of namespace tides", "12:00:00  Warning  Pod sea  <script>alert(1)</script>")
		ginkgo.AddReportEntry("log of container sea", strings.Repeat("wave\n", 1000))
		ginkgo.GinkgoWriter.Println("what the spec wrote")
		gomega.Expect("high").To(gomega.Equal("low"), "the water")
	})
	ginkgo.It("is not there", func() { ginkgo.Skip("this sea has no tide") })
	ginkgo.PIt("is pending", func() {})
	ginkgo.It("has a matrix", func() {
		ginkgo.AddReportEntry(options.TableEntry, options.Table{Title: "Moon and sea", Head: []string{"moon", "calm", "rough"}, Rows: [][]options.Cell{
			{{Text: "new"}, {Text: "spring", State: "passed"}, {Text: "spring, not neap", State: "failed"}},
		}})
	})
})

// TestLane is what a check of podenv test is: the specs are counted as its subtests.
func TestLane(t *testing.T) {
	t.Run("e2e of tides", func(t *testing.T) {
		t.Attr("ginkgo", os.Getenv("SPECS_JSON"))
		t.Run("Tides.[sig-node] the tide comes in", func(*testing.T) {})
		t.Run("Tides.[sig-node] the tide goes out", func(t *testing.T) { t.Error("the water: expected low") })
		t.Run("Tides.[sig-node] the tide is not there", func(t *testing.T) { t.Error("it must run on this series") })
	})
	t.Run("lint", func(t *testing.T) {
		t.Run("gofmt", func(*testing.T) {})
		t.Run("vet", func(t *testing.T) { t.Skip("no vet here") })
	})
	t.Run("fails by itself", func(t *testing.T) {
		t.Run("though its part passes", func(*testing.T) {})
		t.Error("the end of it")
	})
}

func TestAlone(*testing.T) {}
