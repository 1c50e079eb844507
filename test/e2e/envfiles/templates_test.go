package envfiles

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"podenv.dev/test/e2e/internal/workloads"
)

// workload is a kind of object with a pod template. The suite gates the templates, so that no pod of
// theirs runs: see unscheduled.
type workload = workloads.Kind

// forEachWorkload declares a spec for every kind of workload.
func forEachWorkload(text string, spec func(context.Context, workload)) {
	ginkgo.GinkgoHelper()
	entries := []any{spec}
	for _, w := range workloads.All {
		entries = append(entries, ginkgo.Entry("of a "+w.Name, w))
	}
	ginkgo.DescribeTable(text, entries...)
}
