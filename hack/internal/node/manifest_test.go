package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const staticPodManifest = `apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
  annotations: {unknown.example/field: kept}
spec:
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1.33.13
    command: [kube-apiserver, "--feature-gates=EnvFiles=true,Other=false", "--secure-port=6443"]
    livenessProbe: {httpGet: {port: 6443}, futureField: [1, true, "2"]}
  - name: sidecar
    image: registry.k8s.io/sidecar:1
status: {}
`

func TestEditPodChangesWhatItIsToldAndNothingElse(t *testing.T) {
	tests := map[string]struct {
		edit podEdit
		want *strings.Replacer // of staticPodManifest, beside the UID
	}{
		"an image": {
			podEdit{uid: "4711", image: "registry.k8s.io/kube-apiserver:new"},
			strings.NewReplacer("kube-apiserver:v1.33.13", "kube-apiserver:new"),
		},
		"gates": {
			podEdit{uid: "4711", gates: map[string]bool{"EnvFiles": false, "A": true}},
			strings.NewReplacer(`"--feature-gates=EnvFiles=true,Other=false", "--secure-port=6443"`, `"--secure-port=6443", "--feature-gates=A=true,EnvFiles=false"`),
		},
		"no gates": {
			podEdit{uid: "4711", gates: map[string]bool{}},
			strings.NewReplacer(`"--feature-gates=EnvFiles=true,Other=false", `, ""),
		},
		"gates as they are": {podEdit{uid: "4711"}, strings.NewReplacer()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := editPod(staticPodManifest, "kube-apiserver", test.edit)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(test.want.Replace(staticPodManifest), "metadata:", "metadata:\n  uid: \"4711\"", 1)
			if diff := cmp.Diff(decoded(t, want), decoded(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if uid := podUID(got); uid != "4711" {
				t.Errorf("the UID that it spells out is %q", uid)
			}
		})
	}
}

func decoded(t *testing.T, text string) (out any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEditPodRefusesWhatIsNoStaticPod(t *testing.T) {
	for name, test := range map[string]struct{ manifest, uid, says string }{
		"a file that is no YAML":             {"{", "4711", "yaml"},
		"a file that is no pod":              {"spec: []", "4711", "no container kube-apiserver"},
		"a pod without metadata":             {strings.Replace(staticPodManifest, "metadata:", "other:", 1), "4711", "no metadata"},
		"a pod whose UID is not known":       {staticPodManifest, "", "no UID"},
		"a pod that has no containers":       {"metadata: {name: a}", "4711", "no container kube-apiserver"},
		"a pod that has another container":   {"metadata: {}\nspec: {containers: [{name: etcd}]}", "4711", "no container kube-apiserver"},
		"a pod whose containers are no list": {"metadata: {}\nspec: {containers: 1}", "4711", "no container kube-apiserver"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := editPod(test.manifest, "kube-apiserver", podEdit{uid: test.uid, image: "x"}); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
}

func TestPodGates(t *testing.T) {
	got, err := podGates(staticPodManifest, "kube-apiserver")
	if diff := cmp.Diff(map[string]bool{"EnvFiles": true, "Other": false}, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if got, err := podGates(staticPodManifest, "sidecar"); err != nil || len(got) != 0 {
		t.Errorf("of a container without the flag: %v, %v", got, err)
	}
	odd := strings.Replace(staticPodManifest, "EnvFiles=true", "EnvFiles=perhaps", 1)
	if got, err := podGates(odd, "kube-apiserver"); err == nil || !strings.Contains(err.Error(), "EnvFiles=perhaps") {
		t.Errorf("of a flag that nobody can read: %v, %v", got, err)
	}
}

func TestPodImage(t *testing.T) {
	if got, err := podImage(staticPodManifest, "sidecar"); err != nil || got != "registry.k8s.io/sidecar:1" {
		t.Errorf("podImage: %q, %v", got, err)
	}
	if got, err := podImage("spec: {containers: [{name: a}]}", "a"); err == nil {
		t.Errorf("podImage of a container without one: %q", got)
	}
}

func TestTheTimeInATagIsReplacedAndNotAddedTo(t *testing.T) {
	for image, want := range map[string]string{
		"registry.k8s.io/kube-apiserver:v1.33.13":                     "registry.k8s.io/kube-apiserver:v1.33.13",
		"registry.k8s.io/kube-apiserver:v1.33.13-at1795250417960":     "registry.k8s.io/kube-apiserver:v1.33.13",
		"registry.k8s.io/kube-apiserver:v1.33.13-0042-at179525041796": "registry.k8s.io/kube-apiserver:v1.33.13-0042",
	} {
		if got := tagTime.ReplaceAllString(image, ""); got != want {
			t.Errorf("%s without the time is %s, want %s", image, got, want)
		}
	}
}
