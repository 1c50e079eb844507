package nodeimage

import (
	"bytes"
	"strings"
	"testing"
	"text/template"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestDefaultCNIManifestIsWhatKindExpects(t *testing.T) {
	data, err := ownFiles.ReadFile("files/kind/manifests/default-cni.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range []string{"would you kindly template this file", "would you kindly patch this file"} {
		if !bytes.Contains(data, []byte(marker)) {
			t.Errorf("kind looks for %q", marker)
		}
	}
	filled, err := template.New("cni").Parse(string(data))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := filled.Execute(&out, struct{ PodSubnet string }{"10.244.0.0/16,fd00:10:244::/56"}); err != nil {
		t.Fatal(err)
	}
	var daemons appsv1.DaemonSet
	objects := map[string]any{
		"ServiceAccount": new(corev1.ServiceAccount), "ClusterRole": new(rbacv1.ClusterRole),
		"ClusterRoleBinding": new(rbacv1.ClusterRoleBinding), "DaemonSet": &daemons,
	}
	for _, doc := range strings.Split(out.String(), "\n---\n")[1:] {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
			t.Fatal(err)
		}
		into := objects[kind.Kind]
		if into == nil {
			t.Fatalf("unexpected %q in\n%s", kind.Kind, doc)
		}
		delete(objects, kind.Kind)
		if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
		}
	}
	if len(objects) > 0 {
		t.Errorf("missing: %v", objects)
	}
	container := daemons.Spec.Template.Spec.Containers[0]
	if container.Image != podnet.ref {
		t.Errorf("image %s, but the node image has %s", container.Image, podnet.ref)
	}
	env := map[string]string{}
	for _, e := range container.Env { // kind appends to it, so there has to be one
		env[e.Name] = e.Value
	}
	if got := env["POD_SUBNET"]; got != "10.244.0.0/16,fd00:10:244::/56" {
		t.Errorf("POD_SUBNET = %q", got)
	}
}
