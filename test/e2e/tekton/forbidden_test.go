package tekton

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/tekton"
)

// sentence is the document's.
const sentence = `"HTTP_PROXY" is not a valid environment variable to define in the podTemplate`

// denied is how the webhook begins its answer.
const denied = `admission webhook "validation.webhook.pipeline.tekton.dev" denied the request: validation failed: `

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
	f.It("a run is refused that sets one, by name and place", framework.WithSerial(), suite.Shows("TEP-0101", "forbidden"), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		const env = `{env: [{name: HTTP_PROXY, value: "8080"}]}`
		const inTaskRunSpecs = "  taskRunSpecs: [{pipelineTaskName: task, taskPodTemplate: " + env + "}]\n"
		const taskPath = "spec.taskRunSpecs[0].podTemplate.env[HTTP_PROXY]"
		const taskPathBeta = "spec.taskRunSpecs[0].taskPodTemplate.env[HTTP_PROXY]"
		for _, tc := range []struct {
			version, manifest string
			paths             []string
		}{
			{"v1", pipelineRun + "  podTemplate: " + env, []string{"spec.taskRunTemplate.podTemplate.env[HTTP_PROXY]"}},
			{"v1beta1", pipelineRun + "  podTemplate: " + env, []string{"spec.podTemplate.env[HTTP_PROXY]"}},
			{"v1", pipelineRun + inTaskRunSpecs, []string{taskPath}},
			{"v1beta1", pipelineRun + inTaskRunSpecs, []string{taskPathBeta}},
			{"v1", pipelineRun + inTaskRunSpecs + "  podTemplate: " + env, []string{taskPath, "spec.taskRunTemplate.podTemplate.env[HTTP_PROXY]"}},
			{"v1beta1", pipelineRun + inTaskRunSpecs + "  podTemplate: " + env, []string{"spec.podTemplate.env[HTTP_PROXY]", taskPathBeta}},
		} {
			_, err := dryRun(ctx, f, object(tc.version, tc.manifest))
			gomega.Expect(err).To(gomega.MatchError(denied+sentence+": "+strings.Join(tc.paths, ", ")), tc.version)
		}
		for _, version := range []string{"v1", "v1beta1"} {
			_, err := dryRun(ctx, f, tekton.In(version, taskRun("podTemplate: "+env, "")))
			gomega.Expect(err).To(gomega.MatchError(denied+sentence+": spec.podTemplate.env[HTTP_PROXY]"), version)
		}
	})

	f.It("steps, stepTemplates and the cluster's default may set one", framework.WithSerial(), suite.Shows("TEP-0101", "forbidden in the default", "forbidden in steps"), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", map[string]string{
			"default-forbidden-env": "HTTP_PROXY, NO_PROXY",
			"default-pod-template":  `{env: [{name: HTTP_PROXY, value: cluster}]}`,
		})
		steps := succeed(ctx, f, taskRun("", `env: [{name: HTTP_PROXY, value: step}, {name: NO_PROXY, value: step}]`))
		see(steps[0], map[string]string{"HTTP_PROXY": "cluster", "NO_PROXY": "step"})
	})

	f.It("a name that is forbidden while a run exists blocks neither its updates nor its end", framework.WithSerial(), func(ctx context.Context) {
		c := client(f)
		running := runningRuns(ctx, c)
		configure(ctx, f, "config-defaults", map[string]string{
			"default-forbidden-env": "HTTP_PROXY",
			"default-pod-template":  `{env: [{name: NEW, value: x}]}`, // another change of the runs' defaults
		})
		for _, run := range running {
			what := run.GetAPIVersion() + " " + run.GetName()
			now, err := c.Resource(run).Get(ctx, run.GetName(), metav1.GetOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(tekton.Ended(tekton.ConditionOf(now))).To(gomega.BeFalse(), what)
			for _, patch := range []struct{ subresource, text string }{
				{"", `{"metadata":{"annotations":{"podenv.dev/test":"x"},"labels":{"podenv.dev/test":"x"}}}`},
				{"status", `{"status":{"annotations":{"podenv.dev/test":"x"}}}`},
				{"", `{"metadata":{"finalizers":null}}`},
			} {
				_, err := c.Resource(run).Patch(ctx, run.GetName(), types.MergePatchType, []byte(patch.text), metav1.PatchOptions{}, subresources(patch.subresource)...)
				framework.ExpectNoError(err, what+": "+patch.text)
			}
			framework.ExpectNoError(retry.RetryOnConflict(pods.Conflicts, func() error {
				now, err = c.Resource(run).Get(ctx, run.GetName(), metav1.GetOptions{})
				framework.ExpectNoError(err)
				gomega.Expect(now.GetFinalizers()).NotTo(gomega.ContainElement(finalizer))
				framework.ExpectNoError(unstructured.SetNestedField(now.Object, "y", "metadata", "annotations", "podenv.dev/test"))
				_, err = c.Resource(run).Update(ctx, now, metav1.UpdateOptions{})
				return err
			}), what)
			_, err = c.Resource(run).Patch(ctx, run.GetName(), types.MergePatchType, []byte(`{"spec":{"params":[{"name":"new","value":"x"}]}}`), metav1.PatchOptions{})
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("Once the "+run.GetKind()+" has started, only status")), what)
		}
		for _, run := range running {
			if strings.HasPrefix(run.GetName(), "cancelled") {
				_, err := c.Resource(run).Patch(ctx, run.GetName(), types.MergePatchType, fmt.Appendf(nil, `{"spec":{"status":%q}}`, cancelled[run.GetKind()]), metav1.PatchOptions{})
				framework.ExpectNoError(err, run.GetName())
				run, err = c.Await(ctx, run, tekton.RunTime, tekton.Ended)
				framework.ExpectNoError(err)
				gomega.Expect(tekton.ConditionOf(run).Reason).To(gomega.Equal(cancelled[run.GetKind()]), run.GetName())
				continue
			}
			letGo(ctx, f, run)
			see(finish(ctx, f, run)[0], map[string]string{"HTTP_PROXY": "8080"})
		}
	})

	f.It("a name that is forbidden while a PipelineRun runs fails the PipelineRun at its next task, with the sentence", framework.WithSerial(), func(ctx context.Context) {
		c := client(f)
		run, err := c.Create(ctx, twoTasks(`{name: HTTP_PROXY, value: "8080"}`))
		framework.ExpectNoError(err)
		awaitSteps(ctx, c, run)
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		letGo(ctx, f, run)
		run, err = c.Await(ctx, run, tekton.RunTime, tekton.Ended)
		framework.ExpectNoError(err)
		condition := tekton.ConditionOf(run)
		gomega.Expect(condition.Status).To(gomega.Equal("False"), "%+v", condition)
		gomega.Expect(condition.Message).To(gomega.ContainSubstring(denied+sentence+": spec.podTemplate.env[HTTP_PROXY]"), "%+v", condition)
		steps, err := c.Steps(ctx, run)
		framework.ExpectNoError(err)
		gomega.Expect(steps).To(gomega.HaveLen(1))
		see(steps[0], map[string]string{"HTTP_PROXY": "8080"})
	})

	f.It("a forbidden variable of the cluster's default may change while a PipelineRun runs: its next task has the new value", framework.WithSerial(), func(ctx context.Context) {
		c := client(f)
		defaults := func(value string) {
			configure(ctx, f, "config-defaults", map[string]string{
				"default-forbidden-env": "HTTP_PROXY",
				"default-pod-template":  fmt.Sprintf("{env: [{name: HTTP_PROXY, value: %s}]}", value),
			})
		}
		defaults("old")
		run, err := c.Create(ctx, twoTasks(`{name: OWN, value: "$(HTTP_PROXY)/run"}`))
		framework.ExpectNoError(err)
		awaitSteps(ctx, c, run)
		defaults("new")
		letGo(ctx, f, run)
		steps := finish(ctx, f, run)
		gomega.Expect(steps).To(gomega.HaveLen(2))
		see(steps[0], map[string]string{"HTTP_PROXY": "old", "OWN": "old/run"})
		see(steps[1], map[string]string{"HTTP_PROXY": "new", "OWN": "new/run"})
	})

	f.It("a name that only a parameter gives fails the TaskRun, with the sentence", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		c := client(f)
		run, err := c.Create(ctx, taskRun(`
params: [{name: variable, value: HTTP_PROXY}]
podTemplate: {env: [{name: "$(params.variable)", value: "8080"}]}
`, ""))
		framework.ExpectNoError(err)
		run, err = c.Await(ctx, run, tekton.RunTime, tekton.Ended)
		framework.ExpectNoError(err)
		condition := tekton.ConditionOf(run)
		gomega.Expect([]string{condition.Status, condition.Reason}).To(gomega.Equal([]string{"False", "TaskRunValidationFailed"}))
		gomega.Expect(condition.Message).To(gomega.ContainSubstring(sentence))
	})

	f.It("a run cannot steer the entrypoint", func(ctx context.Context) {
		for _, name := range []string{"TEKTON_PLATFORM_COMMANDS", "TEKTON_RESOURCE_NAME", "TEKTON_HERMETIC"} {
			_, err := dryRun(ctx, f, taskRun(fmt.Sprintf("podTemplate: {env: [{name: %s, value: x}]}", name), ""))
			gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(strings.ReplaceAll(sentence, "HTTP_PROXY", name))))
		}
	})
})

const finalizer = "podenv.dev/test"

// cancelled is the status by which a run of a kind is cancelled, and the reason of its end.
var cancelled = map[string]string{"TaskRun": "TaskRunCancelled", "PipelineRun": "Cancelled"}

// runningRuns creates, in both API versions, TaskRuns and PipelineRuns that set HTTP_PROXY, in each
// of their pod templates. They have a finalizer, and their steps have started, and wait for letGo.
// Those whose names start with "cancelled" are for that.
func runningRuns(ctx context.Context, c *tekton.Client) []*unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	const env = `{env: [{name: HTTP_PROXY, value: "8080"}]}`
	var running []*unstructured.Unstructured
	for _, version := range []string{"v1", "v1beta1"} {
		for _, kind := range []struct{ name, spec string }{
			{"task", `
kind: TaskRun
spec:
  podTemplate: ` + env + `
  taskSpec: {steps: [{name: main, image: %s, command: [sh, -c, "%s"]}]}
`},
			{"pipeline", `
kind: PipelineRun
spec:
  podTemplate: ` + env + `
  pipelineSpec: {tasks: [{name: task, taskSpec: {steps: [{name: main, image: %s, command: [sh, -c, "%s"]}]}}]}
`},
			{"task-of-pipeline", `
kind: PipelineRun
spec:
  taskRunSpecs: [{pipelineTaskName: task, taskPodTemplate: ` + env + `}]
  pipelineSpec: {tasks: [{name: task, taskSpec: {steps: [{name: main, image: %s, command: [sh, -c, "%s"]}]}}]}
`},
		} {
			for _, end := range []string{"ending", "cancelled"} {
				if end == "cancelled" && (version != "v1" || kind.name == "task-of-pipeline") {
					continue
				}
				run := object(version, "apiVersion: tekton.dev/v1beta1"+fmt.Sprintf(kind.spec, tekton.Image, untilLetGo))
				run.SetName(end + "-" + kind.name + "-" + version)
				run.SetFinalizers([]string{finalizer})
				run, err := c.Create(ctx, run)
				framework.ExpectNoError(err)
				running = append(running, run)
			}
		}
	}
	for _, run := range running {
		awaitSteps(ctx, c, run)
	}
	return running
}

// twoTasks is a PipelineRun whose pod template has a variable. Its first task waits for letGo.
func twoTasks(variable string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: run}
spec:
  taskRunTemplate: {podTemplate: {env: [%s]}}
  pipelineSpec:
    tasks:
    - name: first
      taskSpec: {steps: [{name: main, image: %[2]s, command: [sh, -c, "%[3]s"]}]}
    - name: second
      runAfter: [first]
      taskSpec: {steps: [{name: main, image: %[2]s, command: [env]}]}
`, variable, tekton.Image, untilLetGo))
}

// untilLetGo is a script that prints the environment after letGo.
const untilLetGo = "until [ -e /workspace/go ]; do sleep 1; done; env"

// letGo lets the steps of run end.
func letGo(ctx context.Context, f *framework.Framework, run *unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	steps, err := client(f).Steps(ctx, run)
	framework.ExpectNoError(err)
	for _, step := range steps {
		pods.Exec(ctx, f, step.TaskRun+"-pod", "step-"+step.Name, "", "touch", "/workspace/go")
	}
}

// awaitSteps waits until the steps of run have started.
func awaitSteps(ctx context.Context, c *tekton.Client, run *unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func() error {
		_, err := c.Steps(ctx, run)
		return err
	}).WithTimeout(tekton.RunTime).WithPolling(500 * time.Millisecond).Should(gomega.Succeed())
}

// subresources is an argument of a client's methods.
func subresources(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}
