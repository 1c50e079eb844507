package podpreset

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/e2e/framework"
	"sigs.k8s.io/yaml"

	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

// Four presets for the same pods. The last one is in conflict with the one before.
var differentialPresets = []string{
	allowDatabase,
	`
metadata: {name: fields}
spec:
` + selector + `  env:
  - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  - {name: GREETING, value: "$(POD) at $(DB_PORT)"}
`, `
metadata: {name: sources}
spec:
` + selector + `  envFrom:
  - {prefix: S_, configMapRef: {name: settings}}
  - {secretRef: {name: absent, optional: true}}
  volumeMounts:
  - {mountPath: /settings, name: settings, readOnly: true}
  volumes:
  - {name: settings, configMap: {name: settings}}
`, `
metadata: {name: taken}
spec:
` + selector + `  env: [{name: POD, value: other}, {name: NEVER, value: "1"}]
`}

// `kubectl podenv preset` says before a pod is created what the admission plugin makes of it, and `podenv
// expand --presets` what its containers see. Each entry is a pod that both are asked about.
var _ = describe("kubectl podenv preset and expand --presets agree with the admission plugin and the kubelet,", func(f *framework.Framework) {
	ginkgo.DescribeTable("about a pod", func(ctx context.Context, change func(*v1.Pod)) {
		nodes.RequirePlugin()
		_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOR": "blue"}}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		for _, preset := range differentialPresets[:3] {
			create(ctx, f, preset)
		}
		framework.ExpectNoError(tryCreate(ctx, f, differentialPresets[3]))
		create(ctx, f, "metadata: {name: a-last-one}\nspec:\n  selector: {matchLabels: {role: last}}\n"+variable) // known after the others

		pod := website(change)
		pods.Quick(&pod.Spec)
		created, warned := dryRunWarned(ctx, f, pod)
		var said []struct {
			Injected  []struct{ Preset string }
			Conflicts []struct{ Preset, Message string }
			Result    *v1.Pod
		}
		podenv(ctx, f, pod, &said, "preset")
		gomega.Expect(said).To(gomega.HaveLen(1))

		gomega.Expect(injectable(said[0].Result)).To(gomega.Equal(injectable(created)))
		var conflicts []string
		for _, c := range said[0].Conflicts {
			conflicts = append(conflicts, "PodPreset "+c.Preset+" is not injected: "+c.Message)
		}
		gomega.Expect(strings.Join(conflicts, "\n")).To(gomega.Equal(warned))
		gomega.Expect(said[0].Injected).To(gomega.HaveLen(appliedTo(created)))

		type expandedContainer struct {
			Name string
			Env  []struct{ Name, Value string }
		}
		var expanded []struct{ Containers []expandedContainer }
		podenv(ctx, f, pod, &expanded, "expand", "--presets")
		gomega.Expect(expanded).To(gomega.HaveLen(1))
		pods.RunToEnd(ctx, f, pod)
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			at := slices.IndexFunc(expanded[0].Containers, func(e expandedContainer) bool { return e.Name == container.Name })
			gomega.Expect(at).NotTo(gomega.Equal(-1), "kubectl podenv expand prints container %s", container.Name)
			want, seen := map[string]string{}, pods.Env(ctx, f, pod.Name, container.Name)
			for _, env := range expanded[0].Containers[at].Env {
				want[env.Name] = env.Value
			}
			for _, name := range []string{"PATH", "HOME", "HOSTNAME"} { // of the runtime and the image
				delete(seen, name)
			}
			gomega.Expect(seen).To(gomega.Equal(want), "container %s", container.Name)
		}
	},
		ginkgo.Entry("that has nothing of its own", nil),
		ginkgo.Entry("with a variable that a preset sets too, and is in conflict with it", func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
		}),
		ginkgo.Entry("with what a preset has, exactly as it has it", func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}}
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
			pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("cache-volume")}
		}),
		ginkgo.Entry("with a mount at a path of two presets' volumes", func(pod *v1.Pod) {
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "own", MountPath: "/cache/"}, {Name: "own", MountPath: "/settings"}}
			pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("own")}
		}),
		ginkgo.Entry("with a variable that an envFrom of a preset sets too", func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "S_COLOR", Value: "red"}}
		}),
		ginkgo.Entry("of several containers, one of which is in conflict", func(pod *v1.Pod) {
			init, second := pods.Dumps("init"), pods.Dumps("second")
			second.Env = []v1.EnvVar{{Name: "POD", Value: "own"}}
			pod.Spec.InitContainers, pod.Spec.Containers = []v1.Container{init}, append(pod.Spec.Containers, second)
		}),
		ginkgo.Entry("that presets leave alone", func(pod *v1.Pod) {
			pod.Annotations = map[string]string{annotation + "exclude": "true"}
		}),
		ginkgo.Entry("that no preset selects", func(pod *v1.Pod) { pod.Labels["role"] = "backend" }),
	)
})

// dryRunWarned returns the pod as the API server would create it, and its warnings.
func dryRunWarned(ctx context.Context, f *framework.Framework, pod *v1.Pod) (*v1.Pod, string) {
	ginkgo.GinkgoHelper()
	warned := &warnings{}
	config := rest.CopyConfig(f.ClientConfig())
	config.WarningHandler = warned
	as, err := kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	created, err := as.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	framework.ExpectNoError(err)
	return created, warned.text()
}

// injectable is what presets change of a pod, as YAML.
func injectable(pod *v1.Pod) string {
	ginkgo.GinkgoHelper()
	only := v1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: v1.PodSpec{Volumes: pod.Spec.Volumes}}
	reduce := func(containers []v1.Container) (reduced []v1.Container) {
		for _, c := range containers {
			reduced = append(reduced, v1.Container{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts})
		}
		return reduced
	}
	only.Spec.InitContainers, only.Spec.Containers = reduce(pod.Spec.InitContainers), reduce(pod.Spec.Containers)
	text, err := yaml.Marshal(only)
	framework.ExpectNoError(err)
	return string(text)
}

// appliedTo is how many presets a pod says that it has.
func appliedTo(pod *v1.Pod) int {
	n := 0
	for key := range pod.Annotations {
		if strings.HasPrefix(key, applied) {
			n++
		}
	}
	return n
}

// podenv asks podenv about a pod, which is to be created in the test's namespace.
func podenv(ctx context.Context, f *framework.Framework, pod *v1.Pod, answer any, args ...string) {
	ginkgo.GinkgoHelper()
	manifest := pod.DeepCopy()
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	text, err := json.Marshal(manifest)
	framework.ExpectNoError(err)
	args = append(args, "-f", "-", "-o", "json", "--kubeconfig", framework.TestContext.KubeConfig, "--namespace", f.Namespace.Name)
	if framework.TestContext.KubeContext != "" {
		args = append(args, "--context", framework.TestContext.KubeContext)
	}
	cmd := nodes.Plugin(ctx, args...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	// It ends with 1 where a preset is in conflict.
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		framework.ExpectNoError(err, "podenv %s", strings.Join(args, " "))
	}
	framework.ExpectNoError(json.Unmarshal(out, answer), "%s", out)
}
