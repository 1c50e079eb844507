package secondserver

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const manifest = `apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver
  namespace: kube-system
  uid: abc
  labels: {component: kube-apiserver, tier: control-plane}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  containers:
  - name: kube-apiserver
    image: registry.k8s.io/kube-apiserver:v1
    command:
    - kube-apiserver
    - --secure-port=6443
    - --feature-gates=A=true,B=true,C=true
    - --v=2
    ports: [{name: probe-port, containerPort: 6443, protocol: TCP}]
    livenessProbe: {httpGet: {host: 10.0.0.1, path: /livez, port: 6443, scheme: HTTPS}}
    resources: {requests: {cpu: 250m}}
    volumeMounts: [{name: certs, mountPath: /etc/kubernetes/pki}]
  volumes: [{name: certs, hostPath: {path: /etc/kubernetes/pki}}]
`

func TestSecondManifest(t *testing.T) {
	text, err := Manifest(manifest, GatesOff([]string{"A", "B"}))
	if err != nil {
		t.Fatal(err)
	}
	var pod, old v1.Pod
	for text, into := range map[string]*v1.Pod{text: &pod, manifest: &old} {
		if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	if pod.Name != Name || pod.UID != "" || pod.Namespace != old.Namespace {
		t.Errorf("it is not a static pod of its own: %+v", pod.ObjectMeta)
	}
	if pod.Labels["component"] == old.Labels["component"] {
		t.Errorf("who selects the first API server selects it too: %v", pod.Labels)
	}
	c := pod.Spec.Containers[0]
	want := []string{"kube-apiserver", "--secure-port=6444", "--v=2", "--endpoint-reconciler-type=none", "--feature-gates=A=false,B=false,C=true"}
	if !slices.Equal(c.Command, want) {
		t.Errorf("got the command %q, want %q", c.Command, want)
	}
	if probe := c.LivenessProbe.HTTPGet; probe.Port.IntValue() != 6444 || probe.Host != "10.0.0.1" || probe.Path != "/livez" {
		t.Errorf("the probe asks %+v", probe)
	}
	if len(c.Ports) != 0 {
		t.Errorf("it wants ports that the first one has: %v", c.Ports)
	}
	if len(c.Resources.Requests) != 0 {
		t.Errorf("it asks the node for %v", c.Resources.Requests)
	}
	if c.Image != old.Spec.Containers[0].Image || len(c.VolumeMounts) != 1 || len(pod.Spec.Volumes) != 1 || !pod.Spec.HostNetwork {
		t.Errorf("it lacks what the first one has:\n%s", text)
	}
}

func TestSecondManifestRefuses(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"what is no YAML":                 {"{", "yaml"},
		"a pod of another component":      {strings.ReplaceAll(manifest, "kube-apiserver", "etcd"), "no container kube-apiserver"},
		"an API server on a default port": {strings.ReplaceAll(manifest, "    - --secure-port=6443\n", ""), "no flag --secure-port="},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Manifest(test.manifest, GatesOff(nil))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v and\n%s\nwant an error with %q", err, text, test.want)
			}
		})
	}
}

func TestSecondManifestWithFlagsAndAFolder(t *testing.T) {
	text, err := Manifest(manifest, FlagsSet("/var/lib/x", []string{"--audit-log-path=/var/lib/x/log", "--v=4"}))
	if err != nil {
		t.Fatal(err)
	}
	var pod v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	want := []string{"kube-apiserver", "--secure-port=6444", "--feature-gates=A=true,B=true,C=true",
		"--endpoint-reconciler-type=none", "--audit-log-path=/var/lib/x/log", "--v=4"}
	if !slices.Equal(c.Command, want) {
		t.Errorf("got the command %q, want %q", c.Command, want)
	}
	if len(pod.Spec.Volumes) != 2 || pod.Spec.Volumes[1].HostPath.Path != "/var/lib/x" || len(c.VolumeMounts) != 2 || c.VolumeMounts[1].MountPath != "/var/lib/x" {
		t.Errorf("it has not the folder and what the first one has:\n%s", text)
	}
}

func TestSecondManifestWithoutPodPresetHasNeitherItsAPINorItsPlugin(t *testing.T) {
	flags := "    - --enable-admission-plugins=NodeRestriction,PodPreset\n    - --runtime-config=settings.k8s.io/v1alpha1=true\n    - --v=2\n"
	text, err := Manifest(strings.Replace(manifest, "    - --v=2\n", flags, 1), GatesOff([]string{"PodPreset"}))
	if err != nil {
		t.Fatal(err)
	}
	var pod v1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	want := []string{"kube-apiserver", "--secure-port=6444", "--enable-admission-plugins=NodeRestriction", "--v=2",
		"--endpoint-reconciler-type=none", "--feature-gates=A=true,B=true,C=true,PodPreset=false"}
	if got := pod.Spec.Containers[0].Command; !slices.Equal(got, want) {
		t.Errorf("got the command %q, want %q", got, want)
	}
}

// TestInstall: the manifest appears under its name once it is complete.
func TestInstall(t *testing.T) {
	want := "cat > /etc/kubernetes/manifests/.kube-apiserver-second.new <<'END'\na: b\nEND\n" +
		"mv /etc/kubernetes/manifests/.kube-apiserver-second.new /etc/kubernetes/manifests/kube-apiserver-second.yaml"
	if got := Install("a: b"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
