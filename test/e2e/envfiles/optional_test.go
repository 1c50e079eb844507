package envfiles

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// Row 4 of KEP-3721's failure table.
var _ = describe("row 4, with optional: true the container starts and the variable is absent, not empty, when", func(f *framework.Framework) {
	f.It("the file does not define the key", func(ctx context.Context) {
		pod := newPod("no-key",
			writes("config.env", "A=1\n"),
			pods.Dumps(consumer, from("A", "config.env", "A"), optional(from("B", "config.env", "B"))))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("A", "1"))
		gomega.Expect(env).NotTo(gomega.HaveKey("B"))
	})

	f.It("there is no file at the path", func(ctx context.Context) {
		pod := newPod("no-file",
			writes("config.env", "A=1\n"),
			pods.Dumps(consumer, from("A", "config.env", "A"), optional(from("B", "sub/other.env", "B"))))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("A", "1"))
		gomega.Expect(env).NotTo(gomega.HaveKey("B"))
	})

	f.It("nothing has written to the volume", func(ctx context.Context) {
		pod := newPod("no-writer", nil,
			pods.Dumps(consumer, optional(from("A", "config.env", "A")), v1.EnvVar{Name: "B", Value: "literal"}))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).NotTo(gomega.HaveKey("A"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("B", "literal"))
	})
}, suite.Shows("KEP-3721", "4"))

var _ = describe("with optional: true", func(f *framework.Framework) {
	f.It("a key that is there is set", func(ctx context.Context) {
		pod := newPod("optional-present",
			writes("config.env", "A=1\n"),
			pods.Dumps(consumer, optional(from("A", "config.env", "A"))))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Env(ctx, f, pod.Name, consumer)).To(gomega.HaveKeyWithValue("A", "1"))
	})

	f.It("a file that cannot be parsed is still an error", func(ctx context.Context) {
		pod := newPod("optional-unparsable",
			writes("config.env", "A=1\nno declaration\n"),
			pods.Dumps(consumer, optional(from("A", "config.env", "A"))))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		gomega.Expect(event.Message).To(gomega.ContainSubstring("line 2"))
	})
})

var _ = describe("against other sources of the same name,", func(f *framework.Framework) {
	for _, c := range []struct{ text, key, want string }{
		{"the file wins over envFrom and an earlier variable", "A", "of the file"},
		{"an optional key that is missing leaves what envFrom or an earlier variable has set", "NONE", "as it was"},
	} {
		f.It(c.text, func(ctx context.Context) {
			_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "source"}, Data: map[string]string{"FROM": "as it was"}}, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			container := pods.Dumps(consumer, v1.EnvVar{Name: "EARLIER", Value: "as it was"},
				optional(from("FROM", "config.env", c.key)), optional(from("EARLIER", "config.env", c.key)),
				v1.EnvVar{Name: "REFERENCES", Value: "$(FROM), $(EARLIER)"})
			container.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "source"}}}}
			pod := newPod("precedence", writes("config.env", "A=of the file\n"), container)
			pods.RunToEnd(ctx, f, pod)

			env := pods.Env(ctx, f, pod.Name, consumer)
			gomega.Expect(env).To(gomega.HaveKeyWithValue("FROM", c.want))
			gomega.Expect(env).To(gomega.HaveKeyWithValue("EARLIER", c.want))
			gomega.Expect(env).To(gomega.HaveKeyWithValue("REFERENCES", c.want+", "+c.want))
		})
	}
})
