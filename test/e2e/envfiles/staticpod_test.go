package envfiles

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a static pod", func(f *framework.Framework) {
	f.NamespacePodSecurityLevel = admissionapi.LevelPrivileged // to write a manifest onto the node

	f.It("takes variables from an env file, again at each start of the container", func(ctx context.Context) {
		static := newPod("envfiles-static",
			[]v1.Container{sidecar(echo("A=first") + " > /data/config.env")},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		static.Spec.RestartPolicy = v1.RestartPolicyAlways

		mirror := nodes.RunStaticPod(ctx, f, static)
		awaitValue(ctx, f, mirror, "A", "first")
		shell(ctx, f, mirror, echo("A=second")+" > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, mirror, "A", "second")
	})
})
