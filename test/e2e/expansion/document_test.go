package expansion

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/manifests"
)

// documented is the container of the document's example pods.
const documented = "test-container"

var _ = describeIf(whateverTheGate, "the example pods of the document:", func(f *framework.Framework) {
	f.It("the first has an address made of the variables of a service", suite.Shows("Variable expansion", "example 1", "services"), func(ctx context.Context) {
		service, node := createService(ctx, f, "gitserver", "GITSERVER_SERVICE_HOST")
		pod, err := manifests.Pod("expansion-1.yaml")
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, onNodeWithServices(pod, node))

		gomega.Expect(publicURL(ctx, f, pod.Name)).To(gomega.Equal("http://" + service.Spec.ClusterIP + ":8080"))
	})

	f.It("the second has an address made of its namespace, and keeps the reference to a port that is not declared", suite.Shows("Variable expansion", "example 2", "unmatched"), func(ctx context.Context) {
		pod, err := manifests.Pod("expansion-2.yaml")
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(publicURL(ctx, f, pod.Name)).To(gomega.Equal("http://gitserver." + f.Namespace.Name + ":$(SERVICE_PORT)"))
	})
})

var _ = describe("the example pods of the document raise an event:", func(f *framework.Framework) {
	f.It("the first about both variables of a service that does not exist", func(ctx context.Context) {
		pod, err := manifests.Pod("expansion-1.yaml")
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(publicURL(ctx, f, pod.Name)).To(gomega.Equal("http://$(GITSERVER_SERVICE_HOST):$(GITSERVER_SERVICE_PORT)"))
		expectOneEvent(ctx, f, pod.Name, documented, "$(GITSERVER_SERVICE_HOST) (env PUBLIC_URL), $(GITSERVER_SERVICE_PORT) (env PUBLIC_URL)")
	})

	f.It("the second about the port", func(ctx context.Context) {
		pod, err := manifests.Pod("expansion-2.yaml")
		framework.ExpectNoError(err)
		pods.RunToEnd(ctx, f, pod)

		expectOneEvent(ctx, f, pod.Name, documented, "$(SERVICE_PORT) (env PUBLIC_URL)")
	})
}, suite.Shows("Variable expansion", "event"))

// publicURL is the variable PUBLIC_URL as the document's container printed it.
func publicURL(ctx context.Context, f *framework.Framework, pod string) string {
	ginkgo.GinkgoHelper()
	for line := range strings.Lines(pods.Log(ctx, f, pod, documented)) {
		if value, ok := strings.CutPrefix(line, "PUBLIC_URL="); ok {
			return strings.TrimSuffix(value, "\n")
		}
	}
	framework.Failf("container %s of pod %s did not see PUBLIC_URL", documented, pod)
	return ""
}
