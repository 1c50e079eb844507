package podpreset

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("the document's examples", func(f *framework.Framework) {
	f.It("simple pod spec: the container sees the variable and the volume", suite.Shows("Pod Preset", "example 1", "annotation"), func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		pod := pods.RunToEnd(ctx, f, website(nil))

		gomega.Expect(pods.Env(ctx, f, pod.Name, "website")).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"/cache": "cache-volume"}))
		preset, err := client(f).Get(ctx, "allow-database", metav1.GetOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(pod.Annotations).To(gomega.HaveKeyWithValue(applied+"allow-database", preset.GetResourceVersion()))
	})

	f.It("ConfigMap: env wins over the preset's own envFrom, and expands what it sets", suite.Shows("Pod Preset", "example 2"), func(ctx context.Context) {
		settings := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "etcd-env-config"}, Data: map[string]string{
			"number_of_members": "1", "duplicate_key": "FROM_CONFIG_MAP", "REPLACE_ME": "a value",
		}}
		_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, settings, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		secret := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "config-details"}, StringData: map[string]string{"config.json": "{}"}}
		_, err = f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, secret, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		create(ctx, f, `
metadata: {name: allow-database}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: DB_PORT, value: "6379"}
  - {name: duplicate_key, value: FROM_ENV}
  - {name: expansion, value: $(REPLACE_ME)}
  envFrom:
  - configMapRef: {name: etcd-env-config}
  volumeMounts:
  - {mountPath: /cache, name: cache-volume}
  - {mountPath: /etc/app/config.json, readOnly: true, name: secret-volume}
  volumes:
  - {name: cache-volume, emptyDir: {}}
  - {name: secret-volume, secret: {secretName: config-details}}
`)
		defined := dryRun(ctx, f, website(func(pod *v1.Pod) { // as the preset does
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "duplicate_key", Value: "FROM_ENV"}}
		}))
		gomega.Expect(envOf(defined.Spec.Containers[0])).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
		pod := pods.RunToEnd(ctx, f, website(nil))

		env := pods.Env(ctx, f, pod.Name, "website")
		gomega.Expect(env).To(gomega.HaveKeyWithValue("DB_PORT", "6379"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("duplicate_key", "FROM_ENV"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("expansion", "a value"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("number_of_members", "1"))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{
			"/cache": "cache-volume", "/etc/app/config.json": "secret-volume"}))
	})

	f.It("multiple presets: the pod gets all of them", suite.Shows("Pod Preset", "example 4"), func(ctx context.Context) {
		create(ctx, f, allowDatabase, `
metadata: {name: proxy}
spec:
  selector:
    matchLabels: {role: frontend}
  volumeMounts:
  - {mountPath: /etc/proxy/configs, name: proxy-volume}
  volumes:
  - {name: proxy-volume, emptyDir: {}}
`)
		pod := dryRun(ctx, f, website(nil))

		gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"DB_PORT": "6379"}))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{
			"/cache": "cache-volume", "/etc/proxy/configs": "proxy-volume"}))
		gomega.Expect(pod.Annotations).To(gomega.And(gomega.HaveKey(applied+"allow-database"), gomega.HaveKey(applied+"proxy")))
	})

	f.It("conflict: nothing is injected, and kubectl describe shows the event", suite.Shows("Pod Preset", "example 5", "redefined"), func(ctx context.Context) {
		create(ctx, f, `
metadata: {name: allow-database}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: DB_PORT, value: "6379"}
  volumeMounts:
  - {mountPath: /cache, name: other-volume}
  volumes:
  - {name: other-volume, emptyDir: {}}
`)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) {
			pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("cache-volume")}
			pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "cache-volume", MountPath: "/cache"}}
		}))

		gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"/cache": "cache-volume"}))
		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "allow-database"))
		const message = "Conflict on pod preset. Duplicate mountPath /cache."
		expectConflict(ctx, f, pod, "allow-database", message)
		description := suite.RunKubectl(ctx, "describe", "pod", pod.Name, "--namespace", f.Namespace.Name)
		gomega.Expect(description).To(gomega.And(gomega.ContainSubstring(message), gomega.ContainSubstring(annotation+"allow-database")))
	})
})
