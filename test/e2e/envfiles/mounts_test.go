package envfiles

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// mountsOf6aWithEphemeral are entries of a table whose parameters are a container of a pod, an
// ephemeral container that is added and breaks rule 6a, and the field of the mount that breaks it.
var mountsOf6aWithEphemeral = []ginkgo.TableEntry{
	ginkgo.Entry("an ephemeral container that mounts the volume another container consumes",
		pods.Dumps(consumer, from("A", "config.env", "A")), mountingToo(ephemeral("debug")), "spec.ephemeralContainers[0].volumeMounts[0].name"),
	ginkgo.Entry("an ephemeral container that consumes the volume another container mounts",
		mounting(pods.Dumps("main")), ephemeral("debug", from("A", "config.env", "A")), "spec.containers[0].volumeMounts[0].name"),
}

// The rule of KEP-3721's "Container Behavior", 6a: a volume of env files is mounted by
// init containers only, and a container either mounts it or consumes it. The corpus has the pods
// that are created with such a mount. That an object
// which breaks the rule already can still be updated has its proof in unit tests: an
// API server with the rule stores none.
var _ = describeIf(ownAPI, "the API server, by rule 6a,", func(f *framework.Framework) {
	ginkgo.DescribeTable("refuses", func(ctx context.Context, main v1.Container, added v1.EphemeralContainer, field string) {
		pod := unscheduled(newPod("refused", nil, main))
		pods.Create(ctx, f, pod)

		expectForbidden(tryAddEphemeral(ctx, f.ClientSet, f.Namespace.Name, pod.Name, added), field)
	}, mountsOf6aWithEphemeral)

	forEachWorkload("refuses, by its own path, such a mount in the template", func(ctx context.Context, w workload) {
		pod := unscheduled(newPod("", nil, pods.Dumps("main"), mounting(pods.Dumps(consumer, from("A", "config.env", "A")))))
		_, err := w.Client(f.DynamicClient, f.Namespace.Name).Create(ctx, w.Of("refused", pod), metav1.CreateOptions{})

		expectForbidden(err, w.At("spec.containers[1].volumeMounts[0].name"))
	})
})

// mounting is container with the volume of env files mounted.
func mounting(container v1.Container) v1.Container {
	container.VolumeMounts = []v1.VolumeMount{{Name: volume, MountPath: mount}}
	return container
}

func mountingToo(container v1.EphemeralContainer) v1.EphemeralContainer {
	container.VolumeMounts = []v1.VolumeMount{{Name: volume, MountPath: mount}}
	return container
}

// expectForbidden checks that err is the API server's answer 422 which forbids what is
// at field, and nothing else.
func expectForbidden(err error, field string) {
	ginkgo.GinkgoHelper()
	expectInvalid(err, field)
	for _, cause := range causesOf(err) {
		gomega.Expect(cause.Type).To(gomega.Equal(metav1.CauseTypeForbidden), "%v", err)
	}
}
