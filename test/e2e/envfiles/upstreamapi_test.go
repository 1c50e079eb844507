package envfiles

import (
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/corpus"
	"podenv.dev/test/e2e/internal/pods"
)

// What upstream's API accepts, and this branch's refuses. Stored pods have it, so the branch
// leaves it: a mount that breaks rule 6a brings a Warning, and for the rest the container waits
// as for any file that is missing.
var _ = describeIf(upstreamAPI, "where the API is upstream's, the API server", func(f *framework.Framework) {
	ginkgo.DescribeTable("accepts, and warns of each mount that breaks rule 6a,", func(ctx context.Context, c corpus.Case) {
		client, _, heard := listening(f)
		_, err := client.CoreV1().Pods(f.Namespace.Name).Create(ctx, c.Pod.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		framework.ExpectNoError(err)

		var want []string
		for _, field := range c.Fields {
			if isMount(field) {
				want = append(want, field)
				gomega.Expect(heard.all()).To(gomega.ContainElement(gomega.And(
					gomega.HavePrefix(field+": spec."), gomega.ContainSubstring(`.valueFrom.fileKeyRef takes a file from volume "`))))
			}
		}
		gomega.Expect(heard.ofMounts()).To(gomega.ConsistOf(want), "mounts in %q", heard.all())
	}, entries(acceptedUpstream))

	ginkgo.DescribeTable("warns of", func(ctx context.Context, main v1.Container, added v1.EphemeralContainer, field string) {
		pod := unscheduled(newPod("warned", nil, main))
		pods.Create(ctx, f, pod)

		client, _, heard := listening(f)
		framework.ExpectNoError(tryAddEphemeral(ctx, client, f.Namespace.Name, pod.Name, added))
		gomega.Expect(heard.ofMounts()).To(gomega.ConsistOf(field))
	}, mountsOf6aWithEphemeral)

	forEachWorkload("warns, by its own path, of such a mount in the template", func(ctx context.Context, w workload) {
		_, client, heard := listening(f)
		pod := unscheduled(newPod("", nil, pods.Dumps("main"), mounting(pods.Dumps(consumer, from("A", "config.env", "A")))))
		_, err := w.Client(client, f.Namespace.Name).Create(ctx, w.Of("warned", pod), metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(heard.ofMounts()).To(gomega.ConsistOf(w.At("spec.containers[1].volumeMounts[0].name")))
	})
})

var _ = describeIf(upstreamAPI, "where the API is upstream's, a container", func(f *framework.Framework) {
	f.It("takes what another container writes that is no init container, once it is there", func(ctx context.Context) {
		pod := newPod("beside", nil, pods.Dumps(consumer, from("A", "config.env", "A")),
			runs("writer", "sleep 1; "+echo("A=1")+" > /data/.new; mv /data/.new /data/config.env; exec sleep 3600"))
		pods.Create(ctx, f, pod)

		awaitValue(ctx, f, pod.Name, "A", "1")
	})

	f.It("takes a file whose path begins with a slash from the root of the volume", func(ctx context.Context) {
		pod := newPod("absolute", writes("config.env", "A=1\n"), pods.Dumps(consumer, from("A", "/config.env", "A")))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Env(ctx, f, pod.Name, consumer)).To(gomega.HaveKeyWithValue("A", "1"))
	})

	ginkgo.DescribeTable("waits, and an event shows the start of a long path only, for a path that no node can have:", func(ctx context.Context, path string) {
		pod := newPod("out-of-bounds", nil, pods.Dumps(consumer, from("A", path, "A")))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		gomega.Expect(event.Message).To(gomega.ContainSubstring(`variable "A"`))
		gomega.Expect(len(event.Message)).To(gomega.BeNumerically("<", 1024))
	}, impossiblePaths)

	ginkgo.DescribeTable("waits, and an event says that the limit of a key is 128 bytes, for a key of", func(ctx context.Context, bytes int) {
		pod := newPod("long-key", writes("config.env", "A=1\n"), pods.Dumps(consumer, from("A", "config.env", strings.Repeat("A", bytes))))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		gomega.Expect(event.Message).To(gomega.And(gomega.ContainSubstring(`variable "A"`), gomega.ContainSubstring("128")))
		gomega.Expect(len(event.Message)).To(gomega.BeNumerically("<", 1024))
	},
		ginkgo.Entry("129 bytes", 129),
		ginkgo.Entry("100 KB", 100_000),
	)

	// Upstream's KEP has no row 7: the kubelet reads for every user.
	ginkgo.DescribeTable("takes a file that it may not read itself, by the user of", func(ctx context.Context, r reader) { expectRead(ctx, f, r) }, unreadableBy)

	ginkgo.DescribeTable("takes a file that it may not read itself, for lack of the permission", func(ctx context.Context, r reader) { expectRead(ctx, f, r) }, lackingPermission)
})

// acceptedUpstream returns the pods of feature that only upstream's API server accepts, by name.
func acceptedUpstream(feature string) ([]corpus.Case, error) {
	cases, err := corpus.Refused(feature)
	return slices.DeleteFunc(cases, func(c corpus.Case) bool { return c.UpstreamAccepts == "" }), err
}

// expectRead checks that r's container gets the value at once.
func expectRead(ctx context.Context, f *framework.Framework, r reader) {
	ginkgo.GinkgoHelper()
	_, pod := r.create(ctx, f)
	awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	gomega.Expect(pods.EventsAndStatus(ctx, f, pod.Name)).NotTo(gomega.ContainSubstring(pods.ConfigError))
}

// ofMounts returns the mounts that the warnings are about.
func (w *warnings) ofMounts() []string {
	var mounts []string
	for _, text := range w.all() {
		if field, _, _ := strings.Cut(text, ": "); isMount(field) {
			mounts = append(mounts, field)
		}
	}
	slices.Sort(mounts)
	return mounts
}

func isMount(field string) bool { return strings.Contains(field, ".volumeMounts[") }
