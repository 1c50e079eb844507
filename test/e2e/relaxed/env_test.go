package relaxed

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("a container sees, byte for byte,", func(f *framework.Framework) {
	f.It("the names of the KEP's story, and of shells and file systems", func(ctx context.Context) {
		expectSeen(ctx, f, []string{
			story, "ConnectionStrings:Main", "two  words", " leading and trailing ", "1ST", "007", "-", ".", "..", "../../etc",
			`"quoted"`, `it's`, "`id`", "$", "$$", "$HOME", "$(HOME)", "${HOME}", "(", ")", "a/b", `a\b`, `\n`, "%s", "#", "!", "*", "~", "<>&|;",
		})
	})

	f.It("every printable character alone, first, in the middle and last of a name", func(ctx context.Context) {
		expectSeen(ctx, f, everywhere)
	})

	f.It("special names of values from a field, a ConfigMap and a Secret", func(ctx context.Context) {
		createKeys(ctx, f, map[string]string{"key": "of a ConfigMap"}, map[string]string{"key": "of a Secret"})
		pod := pods.Once("sources", dumps(
			v1.EnvVar{Name: "from a field", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			v1.EnvVar{Name: "from:a:ConfigMap", ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
				LocalObjectReference: v1.LocalObjectReference{Name: source}, Key: "key"}}},
			v1.EnvVar{Name: "1/Secret", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
				LocalObjectReference: v1.LocalObjectReference{Name: source}, Key: "key"}}},
		))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(map[string]string{
			"from a field": "sources", "from:a:ConfigMap": "of a ConfigMap", "1/Secret": "of a Secret",
		}))
	})

	f.It("special names in an ephemeral container", func(ctx context.Context) {
		framework.ExpectNoError(debug(ctx, f, literal(story), literal("1 $")))
		pods.Await(ctx, f, "debugged", "the ephemeral container to end", func(pod *v1.Pod) bool {
			return pods.Status(pod, "debug").State.Terminated != nil
		})

		env := pods.Env(ctx, f, "debugged", "debug")
		gomega.Expect(env).To(gomega.HaveKeyWithValue(story, valueOf(story)))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("1 $", valueOf("1 $")))
	})
}, suite.Shows("KEP-4369", "container"))

// expectSeen runs a container with a variable of each name, and checks that it sees
// these and no others.
func expectSeen(ctx context.Context, f *framework.Framework, names []string) {
	var env []v1.EnvVar
	want := map[string]string{}
	for _, name := range names {
		env = append(env, literal(name))
		want[name] = valueOf(name)
	}
	pod := pods.Once("names", dumps(env...))
	pods.RunToEnd(ctx, f, pod)
	gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(want))
}
