package envfiles

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// Row 6 of KEP-3721's failure table. None of these names is valid under either rule
// for names, strict or relaxed.
var _ = describe("row 6, the container waits, an event says why and names the line, and it starts once the file is right, when", func(f *framework.Framework) {
	ginkgo.DescribeTable("the file has", func(ctx context.Context, line, says string, args ...string) {
		pod := newPod("invalid-name",
			[]v1.Container{sidecar(printf("# comment\nA=1\n"+line, args...) + " > /data/config.env")},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "A")))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		expectNamed(event, "VARIABLE", "config.env", "A")
		gomega.Expect(event.Message).To(gomega.MatchRegexp(`\bline 3\b.*\bname\b`))
		gomega.Expect(event.Message).To(gomega.ContainSubstring(says))

		replace(ctx, f, pod.Name, "config.env", "A=right")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "right")
	},
		ginkgo.Entry("a name that is not ASCII", `\303\204`+"=2\n", "not a valid environment variable name"),
		ginkgo.Entry("a name with a control character", `B\001C`+"=2\n", "not a valid environment variable name"),
		ginkgo.Entry("a name of 129 bytes", "%0129d=2\n", "128 bytes", "0"),
	)
}, suite.Shows("KEP-3721", "6"))
