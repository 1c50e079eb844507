package expand

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func read(t testing.TB, text string) *Manifest {
	t.Helper()
	m := &Manifest{}
	if err := m.Read("test.yaml", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return m
}

// pods runs the dry run in namespace "shop".
func pods(t testing.TB, text string, client kubernetes.Interface) []Pod {
	t.Helper()
	pods, err := Pods(t.Context(), read(t, text), Options{Namespace: "shop", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// podWith is a pod whose one container has the lines, which are YAML.
func podWith(lines ...string) string {
	return `apiVersion: v1
kind: Pod
metadata: {name: app}
spec:
  containers:
  - name: main
    image: app
    ` + strings.Join(lines, "\n    ") + "\n"
}

// container runs the dry run of podWith and returns its container.
func container(t testing.TB, client kubernetes.Interface, lines ...string) Container {
	t.Helper()
	return pods(t, podWith(lines...), client)[0].Containers[0]
}

// clusterOf is a cluster that has the objects.
func clusterOf(objects ...runtime.Object) *fake.Clientset { return fake.NewClientset(objects...) }

// env is one line per variable, NAME=VALUE, and below it its findings.
func (c Container) env() []string {
	var lines []string
	for _, v := range c.Env {
		lines = append(lines, v.Name+"="+v.Value)
		lines = append(lines, brief(v.Findings)...)
	}
	return lines
}

func brief(findings []Finding) []string {
	var lines []string
	for _, f := range findings {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("  %s %s %s%s", f.Type, f.Name, f.Why, f.Nearest)))
	}
	return lines
}
