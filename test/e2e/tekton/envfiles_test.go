package tekton

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/tekton"
)

// fileRun is a TaskRun in which a native sidecar runs script, which writes /env/a.env, and a step
// takes variables from the file: by the pod template, the stepTemplate and its own env.
func fileRun(name, timeout, script, probe string) *unstructured.Unstructured {
	return object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: %s}
spec:
  timeout: %s
  params: [{name: volume, value: env}, {name: path, value: a.env}, {name: key, value: TEMPLATE}]
  podTemplate:
    env:
    - name: FROM_TEMPLATE
      valueFrom: {fileKeyRef: {volumeName: $(params.volume), path: $(params.path), key: $(params.key)}}
  taskSpec:
    params: [{name: volume}, {name: path}, {name: key}]
    volumes: [{name: env, emptyDir: {}}]
    sidecars:
    - name: writer
      image: %s
      command: [sh, -c, %q]
      volumeMounts: [{name: env, mountPath: /env}]
%s
    stepTemplate:
      env:
      - name: FROM_STEP_TEMPLATE
        valueFrom: {fileKeyRef: {volumeName: env, path: $(params.path), key: STEP_TEMPLATE}}
    steps:
    - name: main
      image: %s
      command: [env]
      env:
      - name: FROM_STEP
        valueFrom: {fileKeyRef: {volumeName: $(params.volume), path: a.env, key: STEP}}
`, name, timeout, tekton.Image, script, indent(6, probe), tekton.Image))
}

// writeFile is a script that makes the file at once, of content of the form VAR=VALUE, in the
// form that the kubelets read. The content is a text in a shell's double quotes.
func writeFile(content string) string {
	ginkgo.GinkgoHelper()
	return fmt.Sprintf(`printf %%s "%s" > /env/new && mv /env/new /env/a.env`, envfile.Text(content))
}

const (
	content = "TEMPLATE=1\nSTEP_TEMPLATE=2\nSTEP=3\n"
	// rest keeps the sidecar, and ends with the TERM that the kubelet sends.
	rest    = "trap exit TERM; sleep 3600 & wait"
	written = `startupProbe: {exec: {command: [test, -e, /env/a.env]}, periodSeconds: 1}`
)

// nativeSidecars makes sidecars init containers, which may mount the volume of an env file.
var nativeSidecars = map[string]string{"enable-kubernetes-sidecar": "true"}

var fromFile = map[string]string{"FROM_TEMPLATE": "1", "FROM_STEP_TEMPLATE": "2", "FROM_STEP": "3"}

var _ = describe("variables from files", func(f *framework.Framework) {
	f.It("a native sidecar writes the file before the steps start", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "feature-flags", nativeSidecars)
		see(succeed(ctx, f, fileRun("early", "2m", writeFile(content)+"; "+rest, written))[0], fromFile)
	})

	f.It("a file that comes late holds the TaskRun up, and does not fail it", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "feature-flags", nativeSidecars)
		c := client(f)
		run, err := c.Create(ctx, fileRun("late", "5m", "sleep 15; "+writeFile(content)+"; "+rest, ""))
		framework.ExpectNoError(err)
		run, err = c.Await(ctx, run, tekton.RunTime, func(condition tekton.Condition) bool {
			return tekton.Ended(condition) || strings.Contains(condition.Message, "env file")
		})
		framework.ExpectNoError(err)
		condition := tekton.ConditionOf(run)
		gomega.Expect(condition).To(gomega.HaveField("Status", "Unknown"), "%+v", condition)
		gomega.Expect(condition.Message).To(gomega.ContainSubstring("a.env"))
		see(finish(ctx, f, run)[0], fromFile)
	})

	f.It("a file that stays broken is the reason at the timeout", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "feature-flags", nativeSidecars)
		c := client(f)
		run, err := c.Create(ctx, fileRun("broken", "20s", "echo 'no declaration' > /env/a.env; "+rest, written))
		framework.ExpectNoError(err)
		run, err = c.Await(ctx, run, tekton.RunTime, tekton.Ended)
		framework.ExpectNoError(err)
		condition := tekton.ConditionOf(run)
		gomega.Expect([]string{condition.Status, condition.Reason}).To(gomega.Equal([]string{"False", "TaskRunTimeout"}), "%+v", condition)
		gomega.Expect(condition.Message).To(gomega.ContainSubstring(`step "main" waited for an env file`))
		gomega.Expect(condition.Message).NotTo(gomega.ContainSubstring("no declaration"))
	})
})
