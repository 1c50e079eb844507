package tekton

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/tekton"
)

// sentence is the document's.
const sentence = `"HTTP_PROXY" is not a valid environment variable to define in the podTemplate`

var forbidHTTPProxy = map[string]string{"default-forbidden-env": "HTTP_PROXY"}

const pipelineRun = `
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata: {name: run}
spec:
  pipelineSpec:
    tasks:
    - name: task
      taskSpec: {steps: [{name: main, image: ` + tekton.Image + `, command: [env]}]}
`

var _ = describe("forbidden names", func(f *framework.Framework) {
	f.It("a run is refused that sets one, by name and place", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		const env = `{env: [{name: HTTP_PROXY, value: "8080"}]}`
		for _, tc := range []struct{ version, manifest, path string }{
			{"v1", pipelineRun + "  podTemplate: " + env, "spec.taskRunTemplate.podTemplate.env[HTTP_PROXY]"},
			{"v1beta1", pipelineRun + "  podTemplate: " + env, "spec.podTemplate.env[HTTP_PROXY]"},
			{"v1", pipelineRun + "  taskRunSpecs: [{pipelineTaskName: task, taskPodTemplate: " + env + "}]", "spec.taskRunSpecs[0].podTemplate.env[HTTP_PROXY]"},
			{"v1beta1", pipelineRun + "  taskRunSpecs: [{pipelineTaskName: task, taskPodTemplate: " + env + "}]", "spec.taskRunSpecs[0].taskPodTemplate.env[HTTP_PROXY]"},
		} {
			_, err := dryRun(ctx, f, object(tc.version, tc.manifest))
			gomega.Expect(err).To(gomega.MatchError(gomega.HaveSuffix(sentence+": "+tc.path)), tc.version)
		}
		for _, version := range []string{"v1", "v1beta1"} {
			_, err := dryRun(ctx, f, tekton.In(version, taskRun("podTemplate: "+env, "")))
			gomega.Expect(err).To(gomega.MatchError(gomega.HaveSuffix(sentence+": spec.podTemplate.env[HTTP_PROXY]")), version)
		}
	})

	f.It("steps, stepTemplates and the cluster's default may set one", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", map[string]string{
			"default-forbidden-env": "HTTP_PROXY, NO_PROXY",
			"default-pod-template":  `{env: [{name: HTTP_PROXY, value: cluster}]}`,
		})
		steps := succeed(ctx, f, taskRun("", `env: [{name: HTTP_PROXY, value: step}, {name: NO_PROXY, value: step}]`))
		see(steps[0], map[string]string{"HTTP_PROXY": "cluster", "NO_PROXY": "step"})
	})

	f.It("a name that is forbidden while a run exists blocks neither its updates nor its end", framework.WithSerial(), func(ctx context.Context) {
		c := client(f)
		before := taskRun(`podTemplate: {env: [{name: HTTP_PROXY, value: "8080"}]}`, `args: [sh, -c, "sleep 20; env"]`)
		before.SetFinalizers([]string{"podenv.dev/test"})
		run, err := c.Create(ctx, before)
		framework.ExpectNoError(err)
		configure(ctx, f, "config-defaults", map[string]string{
			"default-forbidden-env": "HTTP_PROXY",
			"default-pod-template":  `{env: [{name: NEW, value: x}]}`, // another change of the run's defaults
		})
		for _, patch := range []string{`{"metadata":{"annotations":{"podenv.dev/test":"x"}}}`, `{"metadata":{"finalizers":null}}`} {
			_, err := c.Resource(run).Patch(ctx, run.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			framework.ExpectNoError(err, patch)
		}
		see(finish(ctx, f, run)[0], map[string]string{"HTTP_PROXY": "8080"})
	})

	f.It("a name that only a parameter gives fails the TaskRun, with the sentence", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		c := client(f)
		run, err := c.Create(ctx, taskRun(`
params: [{name: variable, value: HTTP_PROXY}]
podTemplate: {env: [{name: "$(params.variable)", value: "8080"}]}
`, ""))
		framework.ExpectNoError(err)
		run, err = c.Await(ctx, run, runTime, tekton.Ended)
		framework.ExpectNoError(err)
		condition := tekton.ConditionOf(run)
		gomega.Expect([]string{condition.Status, condition.Reason}).To(gomega.Equal([]string{"False", "TaskRunValidationFailed"}))
		gomega.Expect(condition.Message).To(gomega.ContainSubstring(sentence))
	})

	f.It("a run cannot steer the entrypoint", func(ctx context.Context) {
		for _, name := range []string{"TEKTON_PLATFORM_COMMANDS", "TEKTON_RESOURCE_NAME"} {
			_, err := dryRun(ctx, f, taskRun(fmt.Sprintf("podTemplate: {env: [{name: %s, value: x}]}", name), ""))
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(strings.ReplaceAll(sentence, "HTTP_PROXY", name))))
		}
	})

	f.It("rules that do not parse leave those in force", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		_, err := f.ClientSet.CoreV1().ConfigMaps(system).Patch(ctx, "config-defaults", types.MergePatchType,
			[]byte(`{"data":{"pod-template-rules":"forbidden-env-variables: ["}}`), metav1.PatchOptions{})
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(`failed parsing default config "pod-template-rules"`)))
		_, err = dryRun(ctx, f, taskRun(`podTemplate: {env: [{name: HTTP_PROXY, value: "8080"}]}`, ""))
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(sentence)))
	})
})
