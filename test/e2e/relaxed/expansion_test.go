package relaxed

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

var _ = describe("$(NAME) is expanded for a special name", func(f *framework.Framework) {
	f.It("in the value of a variable, whatever printable character the name has", func(ctx context.Context) {
		var env []v1.EnvVar
		want := map[string]string{}
		for i, name := range append([]string{story, "$$", "$(B"}, everywhere...) {
			reference := v1.EnvVar{Name: fmt.Sprintf("REFERENCE_%d", i), Value: "<$(" + name + ")>"}
			env = append(env, literal(name), reference)
			want[name] = valueOf(name)
			want[reference.Name] = "<" + valueOf(name) + ">"
			if before, after, ok := strings.Cut(name, ")"); ok {
				// A reference ends at the first parenthesis: such a name cannot be referred to.
				want[reference.Name] = "<$(" + before + ")" + after + ")>"
				if before == "A" {
					want[reference.Name] = "<" + valueOf("A") + after + ")>"
				}
			}
		}
		pod := pods.Once("expanded", dumps(env...))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(want))
	})

	f.It("in command and args, and not where it is escaped", func(ctx context.Context) {
		pod := pods.Once("expanded", v1.Container{
			Name: consumer, Image: images.Busybox, ImagePullPolicy: v1.PullNever,
			Env:     []v1.EnvVar{{Name: story, Value: "Debug"}, {Name: "1 $", Value: "one"}},
			Command: []string{"printf", `%s\n`, "$(" + story + ")"},
			Args:    []string{"$(1 $)", "$$(1 $)", "$(not set)"},
		})
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Log(ctx, f, pod.Name, consumer)).To(gomega.Equal("Debug\none\n$(1 $)\n$(not set)\n"))
	})

	f.It("that comes through envFrom", func(ctx context.Context) {
		createKeys(ctx, f, map[string]string{"1ST": "first"}, map[string]string{"1ST": "secret"})
		container := dumps(v1.EnvVar{Name: "REFERENCES", Value: "$(1ST) $(db:1ST)"})
		secret := fromSecret()
		secret.Prefix = "db:"
		container.EnvFrom = []v1.EnvFromSource{fromConfigMap(), secret}
		pod := pods.Once("expanded", container)
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(map[string]string{
			"1ST": "first", "db:1ST": "secret", "REFERENCES": "first secret",
		}))
	})
}, suite.Shows("KEP-4369", "expansion"))
