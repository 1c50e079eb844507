package podpreset

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

var _ = describe("behavior", func(f *framework.Framework) {
	f.It("env, envFrom and mounts go into every container, init containers and sidecars included", suite.Shows("Pod Preset", "all containers"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		always := v1.ContainerRestartPolicyAlways
		pod := dryRun(ctx, f, website(func(pod *v1.Pod) {
			sidecar := pods.Dumps("sidecar")
			sidecar.RestartPolicy = &always
			pod.Spec.InitContainers = []v1.Container{pods.Dumps("init"), sidecar}
			pod.Spec.Containers = append(pod.Spec.Containers, pods.Dumps("second"))
		}))

		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			gomega.Expect(envOf(c)).To(gomega.HaveKeyWithValue("DB_PORT", "6379"), c.Name)
			gomega.Expect(pathsOf(c)).To(gomega.HaveKeyWithValue("/cache", "cache-volume"), c.Name)
		}
	})

	f.It("a pod that other labels, or the exclude annotation, keep from presets stays as it is", suite.Shows("Pod Preset", "exclude"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		for _, change := range []func(*v1.Pod){
			func(pod *v1.Pod) { pod.Labels["role"] = "backend" },
			func(pod *v1.Pod) { pod.Annotations = map[string]string{annotation + "exclude": "true"} },
		} {
			pod := dryRun(ctx, f, website(change))
			gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
			gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.BeEmpty())
		}
		pod := dryRun(ctx, f, website(func(pod *v1.Pod) { pod.Annotations = map[string]string{annotation + "exclude": "false"} }))
		gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.HaveKey("DB_PORT"))
	})

	f.It("a pod that exists is not changed", func(ctx context.Context) {
		pod := pods.Create(ctx, f, website(nil))
		create(ctx, f, allowDatabase)
		pod, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		pod.Labels["new"] = "label"
		pod.ResourceVersion = "" // whatever the kubelet writes meanwhile
		pod, err = f.ClientSet.CoreV1().Pods(pod.Namespace).Update(ctx, pod, metav1.UpdateOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
	})

	f.It("a pod whose name is generated gets presets, and the event of a conflict", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := website(func(pod *v1.Pod) { pod.Name, pod.GenerateName = "", "website-" })
		created, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(envOf(created.Spec.Containers[0])).To(gomega.HaveKey("DB_PORT"))

		pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
		created, err = f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		expectConflict(ctx, f, created, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT.")
	})

	f.It("a mount at /cache/ is in conflict with one at /cache, as the kubelet mounts both at one path", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "own", MountPath: "/cache/"}}
			pod.Spec.Volumes = []v1.Volume{{Name: "own", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		}))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"/cache/": "own"}))
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Duplicate mountPath /cache.")
	})

	f.It("presets are applied from oldest to newest", suite.Shows("Pod Preset", "oldest first"), func(ctx context.Context) {
		create(ctx, f, `
metadata: {name: older}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: A, value: "1"}]
`)
		older, err := client(f).Get(ctx, "older", metav1.GetOptions{})
		framework.ExpectNoError(err)
		// Of two presets of one second the name decides.
		gomega.Eventually(ctx, time.Now).WithTimeout(30 * time.Second).Should(gomega.BeTemporally(">=", older.GetCreationTimestamp().Add(time.Second)))
		create(ctx, f, `
metadata: {name: a-younger}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: B, value: "2"}]
`)
		pod := dryRun(ctx, f, website(nil))
		var names []string
		for _, variable := range pod.Spec.Containers[0].Env {
			names = append(names, variable.Name)
		}
		gomega.Expect(names).To(gomega.Equal([]string{"A", "B"}))
	})

	f.It("server-side apply of a pod injects, and owns nothing of what was injected", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		manifest := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"applied","labels":{"role":"frontend"}},"spec":{"containers":[{"name":"website","image":"` + images.Envdump + `"}]}}`)
		force := true
		for range 2 {
			pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, "applied", "application/apply-patch+yaml", manifest, metav1.PatchOptions{FieldManager: "spec", Force: &force})
			framework.ExpectNoError(err)
			gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
			for _, owned := range pod.ManagedFields {
				gomega.Expect(owned.FieldsV1.String()).NotTo(gomega.ContainSubstring("DB_PORT"), owned.Manager)
				gomega.Expect(owned.FieldsV1.String()).NotTo(gomega.ContainSubstring("cache-volume"), owned.Manager)
			}
		}
	})

	f.It("a dry run injects, and warns of a conflict", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		gomega.Expect(envOf(dryRun(ctx, f, website(nil)).Spec.Containers[0])).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
		conflicting := website(func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}} })
		config, warned := withWarnings(f)
		as, err := kubernetes.NewForConfig(config)
		framework.ExpectNoError(err)
		_, err = as.CoreV1().Pods(f.Namespace.Name).Create(ctx, conflicting, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		framework.ExpectNoError(err)
		gomega.Expect(warned.text()).To(gomega.ContainSubstring("Duplicate env DB_PORT"))
	})

	f.It("a sidecar and an init container see what was injected", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		always := v1.ContainerRestartPolicyAlways
		sidecar := pods.Dumps("sidecar")
		sidecar.RestartPolicy, sidecar.Args = &always, []string{"serve"}
		pod := pods.RunToEnd(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.InitContainers = []v1.Container{sidecar, pods.Dumps("init")}
		}))
		for _, name := range []string{"sidecar", "init", "website"} {
			gomega.Expect(pods.Env(ctx, f, pod.Name, name)).To(gomega.HaveKeyWithValue("DB_PORT", "6379"), name)
		}
	})
})

var _ = describe("conflicts", func(f *framework.Framework) {
	f.It("what the pod has exactly as the preset is none", suite.Shows("Pod Preset", "same"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := dryRun(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "6379"}}
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
			pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("cache-volume")}
		}))
		gomega.Expect(pod.Annotations).To(gomega.HaveKey(applied + "allow-database"))
		gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.HaveLen(1))
	})

	f.It("an env or a volume that is defined otherwise is one: nothing is injected, and the event has no value", suite.Shows("Pod Preset", "redefined"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "xyzzy"}}
			pod.Spec.Volumes = []v1.Volume{{Name: "cache-volume", VolumeSource: v1.VolumeSource{DownwardAPI: &v1.DownwardAPIVolumeSource{}}}}
		}))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.BeEmpty())
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT. Duplicate volume cache-volume.")
		told := pods.EventsAndStatus(ctx, f, pod.Name)
		gomega.Expect(told).NotTo(gomega.ContainSubstring("xyzzy"))
		gomega.Expect(told).NotTo(gomega.ContainSubstring("6379"))
	})

	f.It("an env that the envFrom of the pod sets is one, where the ConfigMap exists", suite.Shows("Pod Preset", "env and envFrom"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		withSource := website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "ports"}}}}
		})
		gomega.Expect(dryRun(ctx, f, withSource).Annotations).To(gomega.HaveKey(applied + "allow-database"))

		_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "ports"}, Data: map[string]string{"DB_PORT": "1"}}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		pod := pods.Create(ctx, f, withSource)
		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "allow-database"))
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT, which envFrom ConfigMap ports sets too.")
	})

	f.It("an envFrom of the preset that sets what one of the pod sets is one", suite.Shows("Pod Preset", "env and envFrom"), func(ctx context.Context) {
		for name, port := range map[string]string{"ports": "1", "own": "2"} {
			_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"DB_PORT": port}}, metav1.CreateOptions{})
			framework.ExpectNoError(err)
		}
		create(ctx, f, "metadata: {name: ports}\nspec:\n"+selector+"  envFrom: [{configMapRef: {name: ports}}]\n")
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "own"}}}}
		}))
		gomega.Expect(pod.Spec.Containers[0].EnvFrom).To(gomega.HaveLen(1))
		expectConflict(ctx, f, pod, "ports", "Conflict on pod preset. Duplicate env DB_PORT, which envFrom ConfigMap own sets too.")
	})

	f.It("of two presets that redefine each other the older one is injected", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		framework.ExpectNoError(tryCreate(ctx, f, `
metadata: {name: second}
spec:
  selector: {matchExpressions: [{key: role, operator: In, values: [frontend, probe]}]}
  env: [{name: DB_PORT, value: "1"}, {name: OTHER, value: "2"}]
`))
		awaitKnown(ctx, f, "second", map[string]string{"role": "probe"}) // which only the second one matches
		pod := pods.Create(ctx, f, website(nil))
		gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"DB_PORT": "6379"}))
		expectConflict(ctx, f, pod, "second", "Conflict on pod preset. Duplicate env DB_PORT.")
	})

	f.It("of many presets ten events are raised: the last one says how many more are in conflict", func(ctx context.Context) {
		pod := website(nil)
		for i := range 12 {
			name := fmt.Sprintf("A_%d", i)
			create(ctx, f, fmt.Sprintf("metadata: {name: preset-%d}\nspec:\n%s  env: [{name: %s, value: '1'}]\n", i, selector, name))
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, v1.EnvVar{Name: name, Value: "2"})
		}
		pod = pods.Create(ctx, f, pod)
		events := func(ctx context.Context) (messages []string, err error) {
			list, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{FieldSelector: "reason=conflict,involvedObject.uid=" + string(pod.UID)})
			for _, event := range list.Items {
				messages = append(messages, event.Message)
			}
			return messages, err
		}
		// They are raised one after another.
		const last = "Conflict on pod preset. 3 more PodPresets are in conflict."
		gomega.Eventually(ctx, events).WithTimeout(30 * time.Second).Should(gomega.ContainElement(last))
		gomega.Expect(events(ctx)).To(gomega.HaveLen(10))
	})
})
