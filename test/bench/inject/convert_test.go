package inject

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"podenv.dev/hack/operator/preset"
)

// example is the first example of the document, with an envFrom, a variable from the pod and a
// file mode, so that each kind of value is written.
const example = `{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "allow-database"}, "spec": {
  "selector": {"matchLabels": {"role": "frontend"}},
  "env": [{"name": "DB_PORT", "value": "6379"}, {"name": "QUOTED", "value": "a\"b\\c\n$(DB_PORT)<"},
    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
  "envFrom": [{"configMapRef": {"name": "etcd-env-config", "optional": true}}],
  "volumeMounts": [{"mountPath": "/cache", "name": "cache-volume"}, {"mountPath": "/settings", "name": "settings", "readOnly": true}],
  "volumes": [{"name": "cache-volume", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "settings", "defaultMode": 292}}]}}`

var pods = map[string]string{
	"nothing of its own":        `{"containers": [{"name": "a", "image": "i"}]}`,
	"several containers":        `{"initContainers": [{"name": "i", "image": "i"}], "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}`,
	"others of each kind":       `{"containers": [{"name": "a", "image": "i", "env": [{"name": "Z", "value": "1"}], "envFrom": [{"secretRef": {"name": "s"}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}], "volumes": [{"name": "v", "emptyDir": {}}]}`,
	"the same variable":         `{"containers": [{"name": "a", "image": "i", "env": [{"name": "DB_PORT", "value": "6379"}]}]}`,
	"another value":             `{"containers": [{"name": "a", "image": "i", "env": [{"name": "DB_PORT", "value": "1"}]}]}`,
	"another value, init":       `{"initContainers": [{"name": "i", "image": "i", "env": [{"name": "DB_PORT", "value": "1"}]}], "containers": [{"name": "a", "image": "i"}]}`,
	"another mount of the path": `{"containers": [{"name": "a", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/cache"}]}], "volumes": [{"name": "v", "emptyDir": {}}]}`,
	"another volume":            `{"containers": [{"name": "a", "image": "i"}], "volumes": [{"name": "cache-volume", "emptyDir": {"medium": "Memory"}}]}`,
}

// TestPolicyInjectsAsThePreset has an API server judge the same pods by a preset and, in another
// namespace, by the policy that was written of it.
func TestPolicyInjectsAsThePreset(t *testing.T) {
	s := start(t)
	namespace(t, s, "preset", "policy", "none")
	apply(t, s, example, "preset")
	apply(t, s, converted(t, example, "policy"), "")
	injected := func(name, in string) bool {
		pod := create(t, s, in, pods[name], "frontend")
		_, ok := env(pod, "NODE")
		return ok
	}
	await(t, "the preset", func(context.Context) bool { return injected("nothing of its own", "preset") })
	await(t, "the policy", func(context.Context) bool { return injected("nothing of its own", "policy") })
	count := 0
	for name := range pods {
		byPreset, byPolicy := create(t, s, "preset", pods[name], "frontend"), create(t, s, "policy", pods[name], "frontend")
		if !equality.Semantic.DeepEqual(byPreset.Spec, byPolicy.Spec) {
			t.Errorf("%s: the preset makes\n%s\nthe policy\n%s", name, text(t, byPreset.Spec), text(t, byPolicy.Spec))
		}
		if _, ok := env(byPreset, "NODE"); ok {
			count++
		}
	}
	if count != 4 {
		t.Errorf("%d pods were injected, want 4", count)
	}
	for _, where := range [][2]string{{"policy", "backend"}, {"none", "frontend"}} {
		if _, ok := env(create(t, s, where[0], pods["nothing of its own"], where[1]), "NODE"); ok {
			t.Errorf("a pod of namespace %s with the role %s was injected", where[0], where[1])
		}
	}
}

// converted is what `kubectl podenv preset convert` writes.
func converted(tb testing.TB, presets, namespace string) string {
	tb.Helper()
	var m preset.Manifest
	if err := m.Read("example", strings.NewReader(presets)); err != nil {
		tb.Fatal(err)
	}
	var b bytes.Buffer
	if err := preset.WritePolicies(&b, &m, namespace, policyVersion()); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// create is what the API server makes of a pod, in a dry run.
func create(tb testing.TB, s *server, namespace, spec, role string) *corev1.Pod {
	tb.Helper()
	made, err := s.client.CoreV1().Pods(namespace).Create(context.Background(), podOf(tb, spec, role), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

func podOf(tb testing.TB, spec, role string) *corev1.Pod {
	tb.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Labels: map[string]string{"role": role}}}
	if err := json.Unmarshal([]byte(spec), &pod.Spec); err != nil {
		tb.Fatal(err)
	}
	return pod
}

func env(pod *corev1.Pod, name string) (string, bool) {
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == name {
			return e.Value, true
		}
	}
	return "", false
}

func namespace(tb testing.TB, s *server, names ...string) {
	tb.Helper()
	for _, name := range names {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := s.client.CoreV1().Namespaces().Create(context.Background(), n, metav1.CreateOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
}

// apply creates the objects of YAML or JSON; those without a namespace in namespace.
func apply(tb testing.TB, s *server, objects, namespace string) {
	tb.Helper()
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		tb.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(objects), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); err == io.EOF {
			return
		} else if err != nil {
			tb.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue // comments
		}
		mapping, err := mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			tb.Fatal(err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			resource = client.Resource(mapping.Resource).Namespace(namespace)
		}
		if _, err := resource.Create(context.Background(), u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			tb.Fatal(err)
		}
	}
}

func text(tb testing.TB, v any) string {
	tb.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
