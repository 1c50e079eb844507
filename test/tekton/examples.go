package tekton

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Example is one of the examples of TEP-0101: a manifest for v1beta1, with `env` where the document
// says `envs`, and what each step sees.
type Example struct {
	// Name says what the document shows.
	Name string
	// Manifest has the objects; the last one is the run.
	Manifest string
	// Defaults are keys of config-defaults that the example needs.
	Defaults map[string]string
	// Want has for each step, in order, variables and their values. "%RUN%" is the name of the run.
	Want []map[string]string
	// Refused is what the webhook says of the run; empty where it is admitted.
	Refused string
}

const step = `
  steps:
  - name: echo-msg
    image: ` + Image + `
    command: [env]
`

const task = `
apiVersion: tekton.dev/v1beta1
kind: Task
metadata: {name: mytask}
spec:` + step

const three = `    env:
    - {name: MSG, value: Default message}
    - {name: SECRET_PASSWORD, value: Default secret password}
    - {name: NAMESPACE, value: tekton-pipelines}
---
`

const valueFrom = `
    - name: MSG
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['messages']"}}
    - name: SECRET_PASSWORD
      valueFrom: {secretKeyRef: {name: mysecret, key: password, optional: false}}
    - name: NAMESPACE
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
`

const secret = `
apiVersion: v1
kind: Secret
metadata: {name: mysecret}
stringData: {password: from the Secret}
---`

const taskRun = `
apiVersion: tekton.dev/v1beta1
kind: TaskRun
metadata: {name: mytaskrun}
spec:
  taskRef: {name: mytask}
`

const oneTask = `
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata: {name: one-task-pipeline-run}
spec:
  pipelineSpec:
    tasks:
    - {name: mytaskrun, taskRef: {name: mytask}}
`

const threeTasks = `
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata: {name: three-task-pipeline-run, labels: {messages: from-a-label}}
spec:
  pipelineSpec:
    tasks:
    - {name: mytaskrun, taskRef: {name: mytask}}
    - {name: mytaskrun2, taskRef: {name: mytask}, runAfter: [mytaskrun]}
    - {name: mytaskrun3, taskRef: {name: mytask}, runAfter: [mytaskrun2]}
`

var fromReferences = map[string]string{"MSG": "from-a-label", "SECRET_PASSWORD": "from the Secret", "NAMESPACE": "%NAMESPACE%"}

var ownOverReferences = map[string]string{"MSG": "Default message", "SECRET_PASSWORD": "Default secret password", "NAMESPACE": "tekton-pipelines", "OTHER": "%NAMESPACE%"}

// Examples are those of the document, in its order.
var Examples = []Example{{
	Name: "a PipelineRun sets a literal and a reference",
	Manifest: task + "---" + oneTask + `  podTemplate:
    env:
    - {name: TOKEN_PATH, value: /opt/user-token}
    - name: TKN_PIPELINE_RUN
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['tekton.dev/pipelineRun']"}}
`,
	Want: []map[string]string{{"TOKEN_PATH": "/opt/user-token", "TKN_PIPELINE_RUN": "%RUN%"}},
}, {
	Name: "a TaskRun sets a literal and a reference",
	Manifest: task + "---" + taskRun + `  podTemplate:
    env:
    - {name: TOKEN_PATH, value: /opt/user-token}
    - name: TKN_TASKRUN_RUN
      valueFrom: {fieldRef: {fieldPath: "metadata.labels['tekton.dev/taskRun']"}}
`,
	Want: []map[string]string{{"TOKEN_PATH": "/opt/user-token", "TKN_TASKRUN_RUN": "%RUN%"}},
}, {
	Name: "a TaskRun overrides a step's variable",
	Manifest: task + `    env: [{name: MSG, value: Default message}]
---` + taskRun + `  podTemplate: {env: [{name: MSG, value: Overwritten message}]}
`,
	Want: []map[string]string{{"MSG": "Overwritten message"}},
}, {
	Name:     "a PipelineRun overrides a step's variable",
	Manifest: task + three + oneTask + "  podTemplate: {env: [{name: MSG, value: Overwritten message}]}\n",
	Want:     []map[string]string{{"MSG": "Overwritten message", "SECRET_PASSWORD": "Default secret password", "NAMESPACE": "tekton-pipelines"}},
}, {
	Name:     "three tasks share one Task, and the PipelineRun's references",
	Manifest: secret + task + three + threeTasks + "  podTemplate:\n    env:" + valueFrom,
	Want:     []map[string]string{fromReferences, fromReferences, fromReferences},
}, {
	// The document lists stepTemplate over steps and elsewhere calls it the default: a step's own
	// variable is in force.
	Name:     "without pod templates, a stepTemplate is the default of a step",
	Manifest: strings.Replace(task, "spec:", "spec:\n  stepTemplate: {env: [{name: MSG, value: Overwritten message}, {name: OTHER, value: template}]}", 1) + three + oneTask,
	Want:     []map[string]string{{"MSG": "Default message", "OTHER": "template", "NAMESPACE": "tekton-pipelines"}},
}, {
	Name:     "without pod templates, a stepTemplate with references is the default of a step",
	Manifest: secret + strings.Replace(task, "spec:", "spec:\n  stepTemplate:\n    env:"+valueFrom+"    - {name: OTHER, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}", 1) + three + threeTasks,
	Want:     []map[string]string{ownOverReferences, ownOverReferences, ownOverReferences},
}, {
	Name:     "a forbidden variable is refused",
	Manifest: task + "---" + taskRun + `  podTemplate: {env: [{name: HTTP_PROXY, value: "8080"}]}` + "\n",
	Defaults: map[string]string{"pod-template-rules": "forbidden-env-variables:\n- \"HTTP_PROXY\"\n"},
	Refused:  `"HTTP_PROXY" is not a valid environment variable to define in the podTemplate`,
}, {
	Name:     "the cluster's default is in every step",
	Manifest: task + "---" + taskRun,
	Defaults: map[string]string{"default-pod-template": "env:\n- name: \"MSG\"\n  value: \"Default message\"\n"},
	Want:     []map[string]string{{"MSG": "Default message"}},
}}

// RunTime is how long a run may take that nothing holds up. Each of its pods may wait a minute and a half
// for the kubelet to show it the annotation with which Tekton starts its steps.
const RunTime = 5 * time.Minute

// Run makes the objects of the example in an API version, waits for the run's end and returns what
// its steps saw. Config-defaults has to be as the example needs it. A step that saw something
// else is an error.
func (e Example) Run(ctx context.Context, c *Client, version string) ([]Step, error) {
	objects, err := Objects(e.Manifest)
	if err != nil {
		return nil, fmt.Errorf("example %q: %w", e.Name, err)
	}
	var run *unstructured.Unstructured
	for n, o := range objects {
		o = In(version, o)
		isRun := n == len(objects)-1
		if isRun { // of which several may be there
			o.SetName(o.GetName() + "-" + rand.String(5))
		} else if err := c.Resource(o).Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("example %q: %w", e.Name, err)
		}
		if run, err = c.Create(ctx, o); err != nil {
			if isRun && e.Refused != "" && strings.Contains(err.Error(), e.Refused) {
				return nil, nil
			}
			return nil, fmt.Errorf("example %q: %w", e.Name, err)
		}
	}
	if e.Refused != "" {
		return nil, fmt.Errorf("example %q: %s was admitted", e.Name, run.GetName())
	}
	if run, err = c.Await(ctx, run, RunTime, Ended); err != nil {
		return nil, fmt.Errorf("example %q: %w", e.Name, err)
	}
	if condition := ConditionOf(run); condition.Status != "True" {
		return nil, fmt.Errorf("example %q: %s %s failed: %+v", e.Name, run.GetKind(), run.GetName(), condition)
	}
	steps, err := c.Steps(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("example %q: %w", e.Name, err)
	}
	return steps, e.check(run.GetName(), c.Namespace, steps)
}

// check compares what the steps saw.
func (e Example) check(run, namespace string, steps []Step) error {
	if len(steps) != len(e.Want) {
		return fmt.Errorf("example %q: %d steps ran, want %d", e.Name, len(steps), len(e.Want))
	}
	values := strings.NewReplacer("%RUN%", run, "%NAMESPACE%", namespace)
	var errs []error
	for n, want := range e.Want {
		for name := range maps.Keys(want) {
			if got, set := steps[n].Env[name]; !set || got != values.Replace(want[name]) {
				errs = append(errs, fmt.Errorf("example %q: step %s of %s saw %s=%q (set: %t), want %q", e.Name, steps[n].Name, steps[n].TaskRun, name, got, set, values.Replace(want[name])))
			}
		}
	}
	return errors.Join(errs...)
}

// Print writes the example's name, and of each step the variables that the example is about.
func Print(w io.Writer, e Example, steps []Step) {
	fmt.Fprintf(w, "\n%s\n", e.Name)
	for n, step := range steps {
		for _, name := range slices.Sorted(maps.Keys(e.Want[n])) {
			fmt.Fprintf(w, "  %s, step %s: %s=%s\n", step.TaskRun, step.Name, name, step.Env[name])
		}
	}
}
