package tekton

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/tekton"
)

// places are where a variable can be set, highest precedence first.
var places = []string{"taskRunSpecs", "run", "default", "step", "stepTemplate"}

// kinds are the ways to give a value.
var kinds = []string{"literal", "empty", "fieldRef", "secretKeyRef", "configMapKeyRef", "fileKeyRef"}

// emptied ends the key of each place, in all that references refer to, whose value is empty.
const emptied = "-empty"

// definition is a line of YAML for the variable name with the value that kind gives at place.
// "fieldRef-empty" is a reference to an empty value.
func definition(name, place, kind string) string {
	kind, isEmpty := strings.CutSuffix(kind, emptied)
	key := place
	if isEmpty {
		key += emptied
	}
	from := map[string]string{
		"literal":         fmt.Sprintf("value: %s-literal", place),
		"empty":           `value: ""`,
		"fieldRef":        fmt.Sprintf(`valueFrom: {fieldRef: {fieldPath: "metadata.labels['%s']"}}`, key),
		"secretKeyRef":    fmt.Sprintf("valueFrom: {secretKeyRef: {name: values, key: %s}}", key),
		"configMapKeyRef": fmt.Sprintf("valueFrom: {configMapKeyRef: {name: values, key: %s}}", key),
		"fileKeyRef":      fmt.Sprintf("valueFrom: {fileKeyRef: {volumeName: env, path: a.env, key: %s}}", key),
	}[kind]
	return fmt.Sprintf("- {name: %s, %s}\n", name, from)
}

func valueOf(place, kind string) string {
	if strings.HasSuffix(kind, "empty") {
		return ""
	}
	return place + "-" + kind
}

// references has for each place the value that a kind of reference finds there, and an empty one.
func references(kind string) map[string]string {
	values := map[string]string{}
	for _, place := range places {
		values[place], values[place+emptied] = valueOf(place, kind), ""
	}
	return values
}

// lines writes each key and its value in a format.
func lines(format string, values map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, format, key, values[key])
	}
	return b.String()
}

// matrix is the environment at each place, as YAML, and what a step sees.
func matrix() (at map[string]string, want map[string]string) {
	at, want = map[string]string{}, map[string]string{}
	over := func(high, highKind, low, lowKind string) {
		name := fmt.Sprintf("%s_%s_OVER_%s_%s", high, highKind, low, lowKind)
		at[high] += definition(name, high, highKind)
		at[low] += definition(name, low, lowKind)
		want[name] = valueOf(high, highKind)
	}
	// Each pair of places, with each pair of kinds, and with a reference to an empty value.
	for n, high := range places {
		for _, low := range places[n+1:] {
			for _, highKind := range kinds {
				for _, lowKind := range kinds {
					over(high, highKind, low, lowKind)
				}
				if strings.HasSuffix(highKind, "Ref") {
					over(high, highKind+emptied, low, "literal")
				}
			}
		}
	}
	// Each set of places, in one of the kinds.
	for set := 1; set < 1<<len(places); set++ {
		name, highest := fmt.Sprintf("SET_%02d", set), ""
		for n, place := range places {
			if set&(1<<n) != 0 {
				at[place] += definition(name, place, "literal")
				if highest == "" {
					highest = place
				}
			}
		}
		want[name] = valueOf(highest, "literal")
	}
	return at, want
}

var _ = describe("precedence", func(f *framework.Framework) {
	f.It("every pair of places with every pair of kinds of value, and every set of places", framework.WithSerial(), suite.Shows("TEP-0101", "run", "default", "precedence", "references"), func(ctx context.Context) {
		at, want := matrix()
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": "env:\n" + at["default"]})
		configure(ctx, f, "feature-flags", nativeSidecars)
		meta := metav1.ObjectMeta{Name: "values"}
		_, err := f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, &v1.Secret{ObjectMeta: meta, StringData: references("secretKeyRef")}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		_, err = f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{ObjectMeta: meta, Data: references("configMapKeyRef")}, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		for _, version := range []string{"v1", "v1beta1"} {
			steps := succeed(ctx, f, object(version, fmt.Sprintf(`
apiVersion: tekton.dev/v1beta1
kind: PipelineRun
metadata:
  name: matrix-%s
  labels:
%s
spec:
  podTemplate:
    env:
%s
  taskRunSpecs:
  - pipelineTaskName: task
    taskPodTemplate:
      env:
%s
  pipelineSpec:
    tasks:
    - name: task
      taskSpec:
        volumes: [{name: env, emptyDir: {}}]
        sidecars:
        - name: writer
          image: %s
          command: [sh, -c, %q]
          volumeMounts: [{name: env, mountPath: /env}]
          %s
        stepTemplate:
          env:
%s
        steps:
        - name: main
          image: %s
          command: [env]
          env:
%s
`, version, indent(4, lines("%s: %q\n", references("fieldRef"))), indent(4, at["run"]), indent(6, at["taskRunSpecs"]),
				tekton.Image, writeFile(lines("%s=%s\n", references("fileKeyRef")))+"; "+rest, written,
				indent(10, at["stepTemplate"]), tekton.Image, indent(10, at["step"]))))
			gomega.Expect(steps).To(gomega.HaveLen(1))
			see(steps[0], want)
			seen := map[string]int{}
			for _, name := range steps[0].Declared {
				seen[name]++
			}
			for name := range want {
				high, _, _ := strings.Cut(name, "_OVER_")
				place, kind, _ := strings.Cut(high, "_")
				definitions := 1
				// A kubelet may skip a fileKeyRef, and what it overrides is in force then. Only a step replaces
				// the entry of its stepTemplate.
				if strings.HasPrefix(kind, "fileKeyRef") && place != "step" {
					definitions = 2
				}
				gomega.Expect(seen[name]).To(gomega.Equal(definitions), "definitions of %s in the container", name)
			}
		}
	})

	f.It("an override stands in the place of the definition, and what extends it behind it", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": `env:
- {name: DEFAULT_ONLY, value: "$(URL)/default"}
- {name: SHARED, value: default}
`})
		steps := succeed(ctx, f, taskRun(`
podTemplate:
  env:
  - {name: RUN_ONLY, value: "$(DEFAULT_ONLY)/run"}
  - {name: HOST, value: b}
  - {name: LIST, value: "$(LIST):run"}
  - {name: SHARED, value: "$(SHARED)+run"}
  - {name: ESCAPED, value: "$$(ESCAPED)"}
`, `
env:
- {name: HOST, value: a}
- {name: URL, value: "http://$(HOST)"}
- {name: LIST, value: step}
- {name: ALL, value: "$(LIST)"}
- {name: ESCAPED, value: step}
`))
		see(steps[0], map[string]string{
			"HOST": "b", "URL": "http://b", "LIST": "step:run", "ALL": "step:run", "ESCAPED": "$(ESCAPED)",
			"DEFAULT_ONLY": "http://b/default", "RUN_ONLY": "http://b/default/run", "SHARED": "default+run",
		})
		gomega.Expect(strings.Join(steps[0].Declared, " ")).To(gomega.Equal("HOST URL LIST LIST ALL ESCAPED DEFAULT_ONLY SHARED SHARED RUN_ONLY"))
	})

	f.It("what an override refers to moves in front of it, and a circle stands behind what it overrides", func(ctx context.Context) {
		steps := succeed(ctx, f, taskRun(`
podTemplate:
  env:
  - {name: NEW, value: db}
  - {name: URL, value: "http://$(NEW):$(PORT)"}
  - {name: OLD, value: "$(LIST)"}
  - {name: LIST, value: "run:$(OLD)"}
`, `
env:
- {name: URL, value: "http://old"}
- {name: LIST, value: step}
- {name: PORT, value: "8080"}
`))
		see(steps[0], map[string]string{"URL": "http://db:8080", "OLD": "step", "LIST": "run:step"})
		gomega.Expect(strings.Join(steps[0].Declared, " ")).To(gomega.Equal("PORT NEW URL LIST OLD LIST"))
	})

	f.It("$(VAR) in command and args is the value in force", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": `{env: [{name: DEFAULT, value: default}, {name: MSG, value: default}]}`})
		steps := succeed(ctx, f, object("v1", fmt.Sprintf(`
apiVersion: tekton.dev/v1
kind: TaskRun
metadata: {name: words}
spec:
  podTemplate: {env: [{name: MSG, value: run}, {name: SHELL_NAME, value: sh}]}
  taskSpec:
    steps:
    - name: main
      image: %s
      command: ["$(SHELL_NAME)", -c, 'echo IN_COMMAND=$(MSG); echo IN_ARGS="$@"', "$(SHELL_NAME)"]
      args: ["$(MSG)", "$(DEFAULT)", "$(STEP)", "$$(MSG)", "$(NOBODY)"]
      env: [{name: MSG, value: step}, {name: STEP, value: "$(MSG)/step"}]
`, tekton.Image)))
		see(steps[0], map[string]string{"IN_COMMAND": "run", "IN_ARGS": "run default run/step $(MSG) $(NOBODY)"})
	})

	f.It("an update of a run adds no default that is newer than the run", framework.WithSerial(), func(ctx context.Context) {
		const before, after = `{env: [{name: BEFORE, value: x}]}`, `{env: [{name: AFTER, value: x}]}`
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": before})
		c := client(f)
		run := taskRun("", "")
		pipeline := object("v1beta1", pipelineRun)
		for _, o := range []*unstructured.Unstructured{run, pipeline} {
			succeed(ctx, f, o)
		}
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": after})
		for _, o := range []*unstructured.Unstructured{run, pipeline} {
			created, err := c.Resource(o).Get(ctx, o.GetName(), metav1.GetOptions{})
			framework.ExpectNoError(err)
			labeled, err := c.Resource(o).Patch(ctx, o.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"podenv.dev/test":"x"}}}`), metav1.PatchOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(labeled.Object["spec"]).To(gomega.Equal(created.Object["spec"]), o.GetKind())
		}
	})
})
