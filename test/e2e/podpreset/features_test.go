package podpreset

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// colored is the start of a preset with a variable from an env file in the volume config.
const colored = `
metadata: {name: colored}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: COLOR, valueFrom: {fileKeyRef: {volumeName: config, path: config.env, key: COLOR}}}
`

// createUnlikeProbe makes a preset that a pod without volumes is in conflict with, then one
// that it is not: the admission plugin knows the first once it knows the second. It returns what
// the API server warns of at the creation of the first.
func createUnlikeProbe(ctx context.Context, f *framework.Framework, text string) string {
	ginkgo.GinkgoHelper()
	config, warned := withWarnings(f)
	as, err := dynamic.NewForConfig(config)
	framework.ExpectNoError(err)
	_, err = as.Resource(presets).Namespace(f.Namespace.Name).Create(ctx, parse(text), metav1.CreateOptions{})
	framework.ExpectNoError(err)
	create(ctx, f, "metadata: {name: second}\nspec:\n"+selector+variable)
	return warned.text()
}

var _ = describe("with env files,", func(f *framework.Framework) {
	f.It("a variable comes from a file in a volume of the pod, which its init container writes", func(ctx context.Context) {
		components.RequireGate(ctx, "EnvFiles")
		createUnlikeProbe(ctx, f, colored+"  - {name: SHADE, value: dark $(COLOR)}\n")
		pod := pods.RunToEnd(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.InitContainers = []v1.Container{{
				Name: "write", Image: images.Busybox, ImagePullPolicy: v1.PullNever,
				Command:      []string{"sh", "-ec", `printf %s "$0" > /data/config.env`, envfile.Text("COLOR=blue\n")},
				VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/data"}},
			}}
			pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("config")}
		}))

		gomega.Expect(envOf(pod.Spec.InitContainers[0])).NotTo(gomega.HaveKey("COLOR"), "the container that writes the file")
		env := pods.Env(ctx, f, pod.Name, "website")
		gomega.Expect(env).To(gomega.HaveKeyWithValue("COLOR", "blue"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("SHADE", "dark blue"))
	})

	f.It("a preset that adds the volume too is in conflict: each container would mount what it reads", func(ctx context.Context) {
		components.RequireGate(ctx, "EnvFiles")
		warned := createUnlikeProbe(ctx, f, colored+"  volumes: [{name: config, emptyDir: {}}]\n  volumeMounts: [{name: config, mountPath: /data}]\n")
		gomega.Expect(warned).To(gomega.HavePrefix("spec.env[0].valueFrom.fileKeyRef.volumeName: no pod gets this preset"))
		pod := pods.RunToEnd(ctx, f, website(nil))

		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "colored"))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.BeEmpty())
		gomega.Expect(pods.Env(ctx, f, pod.Name, "website")).NotTo(gomega.HaveKey("COLOR"))
		expectConflict(ctx, f, pod, "colored", "Conflict on pod preset. Volume config holds env files, so that container website may not mount it.")
	})
})

var _ = describe("with relaxed names of variables,", func(f *framework.Framework) {
	f.It("a preset sets special names, by env and by the prefix of an envFrom", func(ctx context.Context) {
		components.RequireGate(ctx, "RelaxedEnvironmentVariableValidation")
		_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"1ST": "first"}}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		create(ctx, f, `
metadata: {name: special}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: "Logging:LogLevel:Default", value: Debug}
  - {name: two words, value: "$(Logging:LogLevel:Default)!"}
  envFrom:
  - {prefix: "app/", configMapRef: {name: settings}}
`)
		pod := pods.RunToEnd(ctx, f, website(nil))

		env := pods.Env(ctx, f, pod.Name, "website")
		gomega.Expect(env).To(gomega.HaveKeyWithValue("Logging:LogLevel:Default", "Debug"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("two words", "Debug!"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("app/1ST", "first"))
	})
})

var _ = describe("references to variables", func(f *framework.Framework) {
	f.It("see the pod's variables and those of older presets, and the command sees all of them", func(ctx context.Context) {
		create(ctx, f, `
metadata: {name: a-older}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: PORT, value: "6379"}
  - {name: ADDRESS, value: "$(HOST):$(PORT)"}
`, `
metadata: {name: b-younger}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: URL, value: "redis://$(ADDRESS)/"}
`)
		pod := pods.RunToEnd(ctx, f, website(func(pod *v1.Pod) {
			says := v1.Container{Name: "says", Image: images.Busybox, ImagePullPolicy: v1.PullNever,
				Command: []string{"sh", "-c", `echo "$0"; sleep 0.25`, "$(URL)"}} // as long as envdump, for its log
			pod.Spec.Containers = append(pod.Spec.Containers, says)
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Env = []v1.EnvVar{{Name: "HOST", Value: "db"}, {Name: "EARLY", Value: "$(PORT)"}}
			}
		}))

		env := pods.Env(ctx, f, pod.Name, "website")
		gomega.Expect(env).To(gomega.HaveKeyWithValue("ADDRESS", "db:6379"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("URL", "redis://db:6379/"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("EARLY", "$(PORT)"), "a preset's variables stand behind the pod's")
		gomega.Expect(pods.Log(ctx, f, pod.Name, "says")).To(gomega.Equal("redis://db:6379/\n"))
	})
})
