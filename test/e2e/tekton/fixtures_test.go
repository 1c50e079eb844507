package tekton

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"

	"podenv.dev/test/tekton"
)

// system is the namespace of Tekton.
const system = "tekton-pipelines"

var feature = framework.ValidFeatures.Add("TEP-0101")

// describe declares the specs of a theme. They are skipped where the cluster has no Tekton.
func describe(theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return framework.SIGDescribe("node")("Tekton", framework.WithFeature(feature), theme, slices.Concat(labels...), func() {
		f := framework.NewDefaultFramework("tekton")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline
		ginkgo.BeforeEach(func(ctx context.Context) {
			_, err := f.ClientSet.CoreV1().ConfigMaps(system).Get(ctx, "config-defaults", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				framework.Failf("the cluster has no Tekton: run `podenv tekton` first")
			}
			framework.ExpectNoError(err)
		})
		body(f)
	})
}

func client(f *framework.Framework) *tekton.Client {
	return &tekton.Client{Kube: f.ClientSet, Dynamic: f.DynamicClient, Namespace: f.Namespace.Name}
}

// object reads the one object of a manifest for v1beta1, in an API version.
func object(version, manifest string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	all, err := tekton.Objects(manifest)
	framework.ExpectNoError(err, manifest)
	gomega.Expect(all).To(gomega.HaveLen(1), manifest)
	return tekton.In(version, all[0])
}

// taskRun is a TaskRun for v1beta1 with one step, which prints its environment. spec is YAML for
// the TaskRun's spec and step YAML for the step's.
func taskRun(spec, step string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return object("v1beta1", fmt.Sprintf(`
apiVersion: tekton.dev/v1beta1
kind: TaskRun
metadata: {name: run-%s}
spec:
%s
  taskSpec:
    steps:
    - name: main
      image: %s
      command: [env]
%s
`, rand.String(5), indent(2, spec), tekton.Image, indent(6, step)))
}

func indent(n int, text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		b.WriteString(strings.Repeat(" ", n) + line)
	}
	return b.String()
}

// succeed creates the run, waits for its end and returns what its steps saw.
func succeed(ctx context.Context, f *framework.Framework, run *unstructured.Unstructured) []tekton.Step {
	ginkgo.GinkgoHelper()
	c := client(f)
	run, err := c.Create(ctx, run)
	framework.ExpectNoError(err)
	return finish(ctx, f, run)
}

// finish waits until the run has succeeded and returns what its steps saw.
func finish(ctx context.Context, f *framework.Framework, run *unstructured.Unstructured) []tekton.Step {
	ginkgo.GinkgoHelper()
	c := client(f)
	run, err := c.Await(ctx, run, tekton.RunTime, tekton.Ended)
	framework.ExpectNoError(err)
	gomega.Expect(tekton.ConditionOf(run).Status).To(gomega.Equal("True"), "%+v", tekton.ConditionOf(run))
	steps, err := c.Steps(ctx, run)
	framework.ExpectNoError(err)
	return steps
}

// see expects variables of a step.
func see(step tekton.Step, want map[string]string) {
	ginkgo.GinkgoHelper()
	for name, value := range want {
		gomega.Expect(step.Env).To(gomega.HaveKeyWithValue(name, value), "step %s of %s printed\n%s", step.Name, step.TaskRun, step.Log)
	}
}

// configure sets keys of one of Tekton's ConfigMaps until the spec ends, and waits until the webhook
// acts on them. Such a spec must run alone.
func configure(ctx context.Context, f *framework.Framework, name string, data map[string]string) {
	ginkgo.GinkgoHelper()
	configMaps := f.ClientSet.CoreV1().ConfigMaps(system)
	before, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	undo, change := map[string]any{}, map[string]any{}
	for key, value := range data {
		undo[key], change[key] = nil, value
		if old, ok := before.Data[key]; ok {
			undo[key] = old
		}
	}
	set := func(ctx context.Context, data map[string]any) {
		ginkgo.GinkgoHelper()
		text, err := json.Marshal(map[string]any{"data": data})
		framework.ExpectNoError(err)
		_, err = configMaps.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
		framework.ExpectNoError(err)
		inForce(ctx, f)
	}
	ginkgo.DeferCleanup(set, undo)
	set(ctx, change)
}

// inForce waits until the webhook acts on config-defaults as it is now: it sets a label that is
// changed last, and then changed back.
func inForce(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	const key = "default-managed-by-label-value"
	set := func(value any) {
		ginkgo.GinkgoHelper()
		text, err := json.Marshal(map[string]any{"data": map[string]any{key: value}})
		framework.ExpectNoError(err)
		framework.ExpectNoError(patchDefaults(ctx, f, string(text)))
	}
	before, err := f.ClientSet.CoreV1().ConfigMaps(system).Get(ctx, "config-defaults", metav1.GetOptions{})
	framework.ExpectNoError(err)
	label := "podenv-" + rand.String(8)
	set(label)
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := dryRun(ctx, f, taskRun("", ""))
		return err == nil && got.GetLabels()["app.kubernetes.io/managed-by"] == label, nil
	})
	framework.ExpectNoError(err, "waiting for the webhook to act on config-defaults")
	if old, ok := before.Data[key]; ok {
		set(old)
	} else {
		set(nil)
	}
}

// patchDefaults merges a patch into config-defaults.
func patchDefaults(ctx context.Context, f *framework.Framework, patch string) error {
	_, err := f.ClientSet.CoreV1().ConfigMaps(system).Patch(ctx, "config-defaults", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// dryRun creates the run as far as the webhook.
func dryRun(ctx context.Context, f *framework.Framework, run *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return client(f).Resource(run).Create(ctx, run, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
