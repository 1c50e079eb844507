package tekton

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/tekton"
)

// places are where a variable can be set, highest precedence first.
var places = []string{"taskRunSpecs", "run", "default", "step", "stepTemplate"}

// kinds are the ways to give a value.
var kinds = []string{"literal", "empty", "fieldRef", "secretKeyRef", "configMapKeyRef"}

// definition is a line of YAML for the variable name with the value that kind gives at place.
func definition(name, place, kind string) string {
	from := map[string]string{
		"literal":         fmt.Sprintf("value: %s-literal", place),
		"empty":           `value: ""`,
		"fieldRef":        fmt.Sprintf(`valueFrom: {fieldRef: {fieldPath: "metadata.labels['%s']"}}`, place),
		"secretKeyRef":    fmt.Sprintf("valueFrom: {secretKeyRef: {name: values, key: %s}}", place),
		"configMapKeyRef": fmt.Sprintf("valueFrom: {configMapKeyRef: {name: values, key: %s}}", place),
	}[kind]
	return fmt.Sprintf("- {name: %s, %s}\n", name, from)
}

func valueOf(place, kind string) string {
	if kind == "empty" {
		return ""
	}
	return place + "-" + kind
}

// matrix is the environment at each place, as YAML, and what a step sees.
func matrix() (at map[string]string, want map[string]string) {
	at, want = map[string]string{}, map[string]string{}
	// Each pair of places, with each pair of kinds.
	for high := range places {
		for low := high + 1; low < len(places); low++ {
			for _, highKind := range kinds {
				for _, lowKind := range kinds {
					name := fmt.Sprintf("%s_%s_OVER_%s_%s", places[high], highKind, places[low], lowKind)
					at[places[high]] += definition(name, places[high], highKind)
					at[places[low]] += definition(name, places[low], lowKind)
					want[name] = valueOf(places[high], highKind)
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
	f.It("every pair of places with every pair of kinds of value, and every set of places", framework.WithSerial(), func(ctx context.Context) {
		at, want := matrix()
		configure(ctx, f, "config-defaults", map[string]string{"default-pod-template": "env:\n" + at["default"]})
		secret, configMap, labels := map[string]string{}, map[string]string{}, ""
		for _, place := range places {
			secret[place], configMap[place] = valueOf(place, "secretKeyRef"), valueOf(place, "configMapKeyRef")
			labels += fmt.Sprintf("%s: %s\n", place, valueOf(place, "fieldRef"))
		}
		meta := metav1.ObjectMeta{Name: "values"}
		_, err := f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, &v1.Secret{ObjectMeta: meta, StringData: secret}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		_, err = f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{ObjectMeta: meta, Data: configMap}, metav1.CreateOptions{})
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
        stepTemplate:
          env:
%s
        steps:
        - name: main
          image: %s
          command: [env]
          env:
%s
`, version, indent(4, labels), indent(4, at["run"]), indent(6, at["taskRunSpecs"]), indent(10, at["stepTemplate"]), tekton.Image, indent(10, at["step"]))))
			gomega.Expect(steps).To(gomega.HaveLen(1))
			see(steps[0], want)
			seen := map[string]int{}
			for _, name := range steps[0].Declared {
				seen[name]++
			}
			for name := range want {
				gomega.Expect(seen[name]).To(gomega.Equal(1), "definitions of %s in the container", name)
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
})
