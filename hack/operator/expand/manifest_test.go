package expand

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const template = `{metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: app, args: ["$(A)"]}]}}`

func TestEveryKindThatHasPods(t *testing.T) {
	for kind, spec := range map[string]string{
		"v1 Pod":                   `spec: {containers: [{name: main, image: app, args: ["$(A)"]}]}`,
		"v1 PodTemplate":           `template: ` + template,
		"v1 ReplicationController": `spec: {template: ` + template + `}`,
		"apps/v1 Deployment":       `spec: {selector: {}, template: ` + template + `}`,
		"apps/v1 ReplicaSet":       `spec: {selector: {}, template: ` + template + `}`,
		"apps/v1 StatefulSet":      `spec: {selector: {}, template: ` + template + `}`,
		"apps/v1 DaemonSet":        `spec: {selector: {}, template: ` + template + `}`,
		"batch/v1 Job":             `spec: {template: ` + template + `}`,
		"batch/v1 CronJob":         `spec: {schedule: "* * * * *", jobTemplate: {spec: {template: ` + template + `}}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			version, kind, _ := strings.Cut(kind, " ")
			got := pods(t, "apiVersion: "+version+"\nkind: "+kind+"\nmetadata: {name: web}\n"+spec, nil)
			if len(got) != 1 || got[0].Kind != kind || got[0].Name != "web" || got[0].Namespace != "shop" ||
				len(got[0].Containers) != 1 || got[0].Containers[0].Args[0].Value != "$(A)" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestContainersOfEveryType(t *testing.T) {
	got := pods(t, podWith()+`  initContainers: [{name: setup, image: app}, {name: proxy, image: app, restartPolicy: Always}]
  ephemeralContainers: [{name: debug, image: app}]
`, nil)
	var types []string
	for _, c := range got[0].Containers {
		types = append(types, c.Type+" "+c.Name)
	}
	if diff := cmp.Diff([]string{"init container setup", "sidecar proxy", "container main", "ephemeral container debug"}, types); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestDocumentsListsAndOtherKinds(t *testing.T) {
	got := pods(t, `# a comment
---
---
apiVersion: example.com/v1
kind: Custom
spec: {anything: 1}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: one}}
- {apiVersion: v1, kind: Service, metadata: {name: git}}
---
apiVersion: v1
kind: PodList
items: [{metadata: {name: two, namespace: elsewhere}}]
---
{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "three-"}}
`, nil)
	var names []string
	for _, pod := range got {
		names = append(names, pod.Kind+" "+pod.Namespace+"/"+pod.Name)
	}
	if diff := cmp.Diff([]string{"Pod shop/one", "Pod elsewhere/two", "Pod shop/three-"}, names); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWhatCannotBeReadIsRefused(t *testing.T) {
	for _, tc := range []struct{ name, manifest, want string }{
		{"a misspelt field", podWith(`env: [{name: A, valu: a}]`), `test.yaml, document 1: strict decoding error: unknown field "spec.containers[0].env[0].valu"`},
		{"a misspelt field in a list", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, spek: {}}\n", `test.yaml, document 1: item 1: strict decoding error: unknown field "spek"`},
		{"no YAML", podWith() + "---\n{", "test.yaml, document 2: "},
		{"no kind", "a: b\n", "test.yaml, document 1: Object 'Kind' is missing"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := (&Manifest{}).Read("test.yaml", strings.NewReader(tc.manifest))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want %s, got %v", tc.want, err)
			}
		})
	}
	for manifest, want := range map[string]string{
		"# nothing\n": "test.yaml: nothing in it",
		"apiVersion: v1\nkind: Service\n---\napiVersion: example.com/v1\nkind: Custom\n": "test.yaml: no pod or workload in it, only Service, Custom",
	} {
		if _, err := Pods(t.Context(), read(t, manifest), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}
