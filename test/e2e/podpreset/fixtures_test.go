package podpreset

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"
	"sigs.k8s.io/yaml"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

const gate = "PodPreset"

var (
	specs   = suite.For("PodPreset", gate, "podpreset")
	presets = schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}
)

// describe declares specs that need the gate on in the API server; they are skipped, and
// say so, on a cluster where it is off.
func describe(theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return specs.Describe(components.RequireGate, theme, body, labels...)
}

const (
	// annotation is what the keys of the annotations begin with.
	annotation = "podpreset.admission.kubernetes.io/"
	applied    = annotation + "podpreset-"
)

// allowDatabase is the preset of the document's first example.
const allowDatabase = `
metadata: {name: allow-database}
spec:
  selector:
    matchLabels: {role: frontend}
  env:
  - {name: DB_PORT, value: "6379"}
  volumeMounts:
  - {mountPath: /cache, name: cache-volume}
  volumes:
  - {name: cache-volume, emptyDir: {}}
`

// parse reads a preset of the test's namespace.
func parse(text string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	preset := &unstructured.Unstructured{}
	framework.ExpectNoError(yaml.Unmarshal([]byte(text), &preset.Object))
	preset.SetAPIVersion(presets.GroupVersion().String())
	preset.SetKind("PodPreset")
	return preset
}

func client(f *framework.Framework) dynamic.ResourceInterface {
	return f.DynamicClient.Resource(presets).Namespace(f.Namespace.Name)
}

// tryCreate asks the API server for a preset.
func tryCreate(ctx context.Context, f *framework.Framework, text string) error {
	ginkgo.GinkgoHelper()
	_, err := client(f).Create(ctx, parse(text), metav1.CreateOptions{})
	return err
}

// create makes presets, and waits until the admission plugin knows them: it watches.
func create(ctx context.Context, f *framework.Framework, texts ...string) {
	ginkgo.GinkgoHelper()
	for _, text := range texts {
		made, err := client(f).Create(ctx, parse(text), metav1.CreateOptions{})
		framework.ExpectNoError(err)
		labels, _, err := unstructured.NestedStringMap(made.Object, "spec", "selector", "matchLabels")
		framework.ExpectNoError(err)
		awaitKnown(ctx, f, made.GetName(), labels)
	}
}

// awaitKnown waits until a dry run of a pod with labels says that it got the preset, or is
// in conflict with it.
func awaitKnown(ctx context.Context, f *framework.Framework, name string, labels map[string]string) {
	ginkgo.GinkgoHelper()
	probe := pods.Once("probe", pods.Dumps("probe"))
	probe.Labels = labels
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return false, err
		}
		return pod.Annotations[applied+name] != "", nil
	})
	framework.ExpectNoError(err, "the preset %s is not injected into a pod with the labels %v after 30s", name, labels)
}

// website is the pod of the document's examples, of an image that the nodes have.
func website(change func(*v1.Pod)) *v1.Pod {
	pod := pods.Once("website", pods.Dumps("website"))
	pod.Labels = map[string]string{"app": "website", "role": "frontend"}
	if change != nil {
		change(pod)
	}
	return pod
}

// dryRun returns the pod as the API server would create it.
func dryRun(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	created, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	framework.ExpectNoError(err)
	return created
}

// envOf are the variables that a container of a pod declares with a value.
func envOf(c v1.Container) map[string]string {
	env := map[string]string{}
	for _, variable := range c.Env {
		env[variable.Name] = variable.Value
	}
	return env
}

// pathsOf are the paths at which a container mounts volumes, by path, but for that of the
// service account.
func pathsOf(c v1.Container) map[string]string {
	paths := map[string]string{}
	for _, mount := range c.VolumeMounts {
		if mount.MountPath != "/var/run/secrets/kubernetes.io/serviceaccount" {
			paths[mount.MountPath] = mount.Name
		}
	}
	return paths
}

// expectConflict waits for the event of a conflict on a pod.
func expectConflict(ctx context.Context, f *framework.Framework, pod *v1.Pod, preset, message string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]string, error) {
		return conflicts(ctx, f, pod, preset)
	}).WithTimeout(30*time.Second).Should(gomega.ContainElement(message), "the event about the preset %s", preset)
}

// conflicts are the messages of the events about a preset on a pod.
func conflicts(ctx context.Context, f *framework.Framework, pod *v1.Pod, preset string) ([]string, error) {
	events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, event := range events.Items {
		if event.InvolvedObject.UID == pod.UID && event.Reason == "conflict" && event.Source.Component == annotation+preset {
			messages = append(messages, event.Message)
		}
	}
	return messages, nil
}
