package tekton

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/tekton"
)

var _ = describe("tasks", func(f *framework.Framework) {
	f.It("scripts, StepActions, workspaces, results, matrix and finally tasks see it; sidecars and init containers do not have it", func(ctx context.Context) {
		c := client(f)
		_, err := c.Create(ctx, object("v1beta1", fmt.Sprintf(`
apiVersion: tekton.dev/v1beta1
kind: StepAction
metadata: {name: action}
spec: {image: %s, command: [env], env: [{name: MSG, value: action}, {name: OWN, value: "$(MSG)"}]}
`, tekton.Image)))
		framework.ExpectNoError(err)
		steps := succeed(ctx, f, object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: tasks}
spec:
  taskRunTemplate: {podTemplate: {env: [{name: MSG, value: run}]}}
  workspaces: [{name: shared, emptyDir: {}}]
  pipelineSpec:
    workspaces: [{name: shared}]
    tasks:
    - name: fan
      matrix: {params: [{name: number, value: ["1", "2"]}]}
      workspaces: [{name: shared}]
      taskSpec:
        params: [{name: number}]
        workspaces: [{name: shared}]
        results: [{name: msg}]
        sidecars: [{name: side, image: %[1]s, command: [sleep, "3600"]}]
        steps:
        - name: script
          image: %[1]s
          workingDir: /workspace/made
          script: |
            #!/bin/sh
            env
            printf "$MSG" > $(results.msg.path)
            printf "$MSG" > $(workspaces.shared.path)/msg
        - name: action
          ref: {name: action}
    finally:
    - name: last
      params: [{name: msgs, value: "$(tasks.fan.results.msg[*])"}]
      taskSpec:
        params: [{name: msgs, type: array}]
        steps: [{name: last, image: %[1]s, command: [sh, -c, "env; echo RESULTS=$*", sh], args: ["$(params.msgs[*])"]}]
`, tekton.Image)))
		gomega.Expect(steps).To(gomega.HaveLen(5)) // two of the matrix with two steps each, and the last
		for _, step := range steps {
			see(step, map[string]string{"MSG": "run"})
			if step.Name == "action" {
				see(step, map[string]string{"OWN": "run"})
			}
		}
		see(steps[len(steps)-1], map[string]string{"RESULTS": "run run"})

		onlySteps(ctx, f, "MSG")
	})

	f.It("the sidecar that reads results does not have it", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "feature-flags", map[string]string{"results-from": "sidecar-logs"})
		// The controller reads results from the log of the sidecar.
		meta := metav1.ObjectMeta{Name: "tekton-logs"}
		_, err := f.ClientSet.RbacV1().Roles(f.Namespace.Name).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}},
		}}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		_, err = f.ClientSet.RbacV1().RoleBindings(f.Namespace.Name).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "tekton-pipelines-controller"}},
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		run := object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: results}
spec:
  podTemplate: {env: [{name: MSG, value: run}]}
  taskSpec:
    results: [{name: msg}]
    steps: [{name: main, image: %s, command: [sh, -c, 'env; printf "$MSG" > $(results.msg.path)']}]
`, tekton.Image))
		see(succeed(ctx, f, run)[0], map[string]string{"MSG": "run"})
		run, err = client(f).Resource(run).Get(ctx, run.GetName(), metav1.GetOptions{})
		framework.ExpectNoError(err)
		results, _, err := unstructured.NestedSlice(run.Object, "status", "results")
		framework.ExpectNoError(err)
		gomega.Expect(results).To(gomega.ConsistOf(gomega.HaveKeyWithValue("value", "run")))
		gomega.Expect(onlySteps(ctx, f, "MSG")).To(gomega.ContainElement("sidecar-tekton-log-results"))
	})

	f.It("the affinity assistant of a workspace does not have it", func(ctx context.Context) {
		createClaim(ctx, f, "shared")
		c := client(f)
		run, err := c.Create(ctx, object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: assisted}
spec:
  taskRunTemplate: {podTemplate: {env: [{name: MSG, value: run}]}}
  workspaces: [{name: shared, persistentVolumeClaim: {claimName: shared}}]
  pipelineSpec:
    workspaces: [{name: shared}]
    tasks:
    - name: task
      workspaces: [{name: shared}]
      taskSpec:
        workspaces: [{name: shared}]
        steps: [{name: main, image: %s, command: [sh, -c, 'sleep 15; env']}]
`, tekton.Image)))
		framework.ExpectNoError(err)
		awaitSteps(ctx, c, run)
		// The assistant goes with the end of the run.
		gomega.Expect(onlySteps(ctx, f, "MSG")).To(gomega.ContainElement("affinity-assistant"))
		see(finish(ctx, f, run)[0], map[string]string{"MSG": "run"})
	})

	f.It("a pipeline in a pipeline inherits the pod template", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "feature-flags", map[string]string{"enable-api-fields": "alpha"})
		c := client(f)
		run, err := c.Create(ctx, object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: PipelineRun
metadata: {name: parent}
spec:
  taskRunTemplate: {podTemplate: {env: [{name: MSG, value: run}]}}
  pipelineSpec:
    tasks:
    - name: child
      pipelineSpec:
        tasks:
        - name: task
          taskSpec: {steps: [{name: main, image: %s, command: [sh, -c, 'test "$MSG" = run']}]}
`, tekton.Image)))
		framework.ExpectNoError(err)
		run, err = c.Await(ctx, run, tekton.RunTime, tekton.Ended)
		framework.ExpectNoError(err)
		gomega.Expect(tekton.ConditionOf(run).Status).To(gomega.Equal("True"), "%+v", tekton.ConditionOf(run))
	})

	f.It("special names reach the steps", func(ctx context.Context) {
		steps := succeed(ctx, f, taskRun(`podTemplate: {env: [{name: "a name: with {special} characters!", value: x}]}`, ""))
		see(steps[0], map[string]string{"a name: with {special} characters!": "x"})
	})

	f.It("a PodPreset and a pod template set variables of one pod", func(ctx context.Context) {
		if _, err := f.ClientSet.Discovery().ServerResourcesForGroupVersion("settings.k8s.io/v1alpha1"); err != nil {
			ginkgo.Skip("the series does not have PodPreset: " + err.Error())
		}
		c := client(f)
		_, err := c.Create(ctx, object("v1beta1", `
apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata: {name: all}
spec:
  selector: {matchLabels: {preset: "yes"}}
  env: [{name: PRESET, value: preset}]
`))
		framework.ExpectNoError(err)
		run := taskRun("podTemplate: {env: [{name: MSG, value: run}]}", "")
		run.SetLabels(map[string]string{"preset": "yes"})
		see(succeed(ctx, f, run)[0], map[string]string{"PRESET": "preset", "MSG": "run"})
	})

	for _, tc := range []struct{ policy, reason string }{
		{"Never", "PullImageFailed"}, // until the timeout: someone may load the image
		{"IfNotPresent", "TaskRunImagePullFailed"},
	} {
		f.It("an image that no node has is named in the condition, with imagePullPolicy "+tc.policy, func(ctx context.Context) {
			c := client(f)
			run, err := c.Create(ctx, object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: no-image}
spec:
  taskSpec: {steps: [{name: main, image: "podenv.dev/none:1", imagePullPolicy: %s, command: [env]}]}
`, tc.policy)))
			framework.ExpectNoError(err)
			run, err = c.Await(ctx, run, tekton.RunTime, func(condition tekton.Condition) bool { return condition.Reason == tc.reason })
			framework.ExpectNoError(err)
			gomega.Expect(tekton.ConditionOf(run).Message).To(gomega.ContainSubstring("podenv.dev/none:1"))
		})
	}

	f.It("of 50 TaskRuns at once none is lost", framework.WithSerial(), func(ctx context.Context) {
		const n = 50
		c := client(f)
		took := make([]time.Duration, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				defer ginkgo.GinkgoRecover()
				start := time.Now()
				run := taskRun(fmt.Sprintf("podTemplate: {env: [{name: MSG, value: run-%d}]}", i), "env: [{name: MSG, value: step}]")
				run.SetName(fmt.Sprintf("run-%d", i))
				run, err := c.Create(ctx, run)
				framework.ExpectNoError(err)
				run, err = c.Await(ctx, run, 10*time.Minute, tekton.Ended)
				framework.ExpectNoError(err)
				took[i] = time.Since(start)
				steps, err := c.Steps(ctx, run)
				framework.ExpectNoError(err)
				see(steps[0], map[string]string{"MSG": fmt.Sprintf("run-%d", i)})
			})
		}
		wg.Wait()
		slices.Sort(took)
		suite.Report(fmt.Sprintf("50 TaskRuns at once: first %s, median %s, last %s",
			took[0].Round(time.Second), took[n/2].Round(time.Second), took[n-1].Round(time.Second)))
	})
})

// createClaim creates a claim of that name in the namespace, and a volume for it: the cluster may have
// no provisioner.
func createClaim(ctx context.Context, f *framework.Framework, name string) {
	ginkgo.GinkgoHelper()
	none, volume := "", f.Namespace.Name+"-"+name
	size := v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}
	modes := []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	create := v1.HostPathDirectoryOrCreate
	_, err := f.ClientSet.CoreV1().PersistentVolumes().Create(ctx, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume},
		Spec: v1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/" + volume, Type: &create}},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(f.ClientSet.CoreV1().PersistentVolumes().Delete, volume, metav1.DeleteOptions{})
	_, err = f.ClientSet.CoreV1().PersistentVolumeClaims(f.Namespace.Name).Create(ctx, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &none, VolumeName: volume,
			Resources: v1.VolumeResourceRequirements{Requests: size},
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// onlySteps expects that of all containers in the namespace only steps have a variable. It returns
// the names of the others.
func onlySteps(ctx context.Context, f *framework.Framework, variable string) (others []string) {
	ginkgo.GinkgoHelper()
	pods, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, pod := range pods.Items {
		for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			has := slices.ContainsFunc(container.Env, func(e v1.EnvVar) bool { return e.Name == variable })
			isStep := strings.HasPrefix(container.Name, "step-")
			gomega.Expect(has).To(gomega.Equal(isStep), "container %s of pod %s", container.Name, pod.Name)
			if !isStep {
				others = append(others, container.Name)
			}
		}
	}
	gomega.Expect(others).NotTo(gomega.BeEmpty())
	return others
}
