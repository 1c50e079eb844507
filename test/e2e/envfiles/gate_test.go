package envfiles

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/gates"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describeIf(gates.RequireOff, "with the gate off in the API server,", func(f *framework.Framework) {
	f.It("fileKeyRef is dropped from a new pod", func(ctx context.Context) {
		pod := unscheduled(newPod("dropped", nil, dumps(consumer, from("A", "config.env", "A"))))
		// Two sources are an error, unless one of them is dropped before validation.
		source := pod.Spec.Containers[0].Env[0].ValueFrom
		source.FieldRef = &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}
		created := pods.Create(ctx, f, pod)

		gomega.Expect(created.Spec.Containers[0].Env[0].ValueFrom).To(gomega.Equal(&v1.EnvVarSource{FieldRef: source.FieldRef}))
	})

	f.It("a variable whose only source was fileKeyRef is refused, not silently left empty", func(ctx context.Context) {
		_, err := pods.TryCreate(ctx, f, unscheduled(newPod("refused", nil, dumps(consumer, from("A", "config.env", "A")))))

		expectInvalid(err, firstVariable)
	})
})
