package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/corpus"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/suite"
)

// Every rule of the API server, one pod for each. test/upstream asks upstream's
// validation about the same pods.
var _ = describe("the API server, asked about the corpus,", func(f *framework.Framework) {
	// The pods are only tried: server-side dry run is all of a creation but the write.
	try := func(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
		return f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	}

	ginkgo.DescribeTable("accepts", func(ctx context.Context, c corpus.Case) {
		created, err := try(ctx, c.Pod.DeepCopy())
		framework.ExpectNoError(err)

		want := fileKeyRefsOf(c.Pod)
		for i := range want {
			if want[i].Optional == nil {
				want[i].Optional = ptr.To(false) // the default
			}
		}
		gomega.Expect(fileKeyRefsOf(created)).To(gomega.Equal(want), "the pod as the API server would store it")
	}, entries(corpus.Accepted))

	ginkgo.DescribeTable("refuses", func(ctx context.Context, c corpus.Case) {
		want := c.Fields
		if components.HasUpstreamAPI(gate) {
			if c.UpstreamAccepts != "" {
				ginkgo.Skip("upstream's API accepts it, see upstreamapi_test.go: " + c.UpstreamAccepts)
			}
			want = c.UpstreamFields
		}
		_, err := try(ctx, c.Pod.DeepCopy())
		var fields []string
		for _, cause := range causesOf(err) {
			fields = append(fields, cause.Field)
			if isMount(cause.Field) {
				gomega.Expect(cause.Type).To(gomega.Equal(metav1.CauseTypeForbidden), "%v", err)
			}
			gomega.Expect(len(cause.Message)).To(gomega.BeNumerically("<", 1024), "bytes of the message about %s", cause.Field)
		}
		gomega.Expect(fields).To(gomega.ConsistOf(want), "fields of %v", err)
	}, entries(corpus.Refused))
})

// entries are a table's entries for the pods that load returns, called as their files.
func entries(load func(feature string) ([]corpus.Case, error)) []ginkgo.TableEntry {
	cases, err := load(corpus.EnvFiles)
	if err != nil {
		panic(err) // the files are part of this binary, and unit-tested
	}
	table := make([]ginkgo.TableEntry, len(cases))
	for i, c := range cases {
		table[i] = ginkgo.Entry(c.Name, c)
		for _, row := range []string{"1", "2"} {
			if strings.HasPrefix(c.Name, "row-"+row+"-") {
				table[i] = ginkgo.Entry(c.Name, suite.Shows("KEP-3721", row), c)
			}
		}
	}
	return table
}

// fileKeyRefsOf are the references of all containers of pod, in the order of the spec.
func fileKeyRefsOf(pod *v1.Pod) (refs []v1.FileKeySelector) {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			for _, env := range c.Env {
				if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
					refs = append(refs, *env.ValueFrom.FileKeyRef)
				}
			}
		}
	}
	return refs
}
