package preset

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/openapi/openapitest"
	"sigs.k8s.io/yaml"

	"podenv.dev/test/policies"
)

const ofTheDocument = `{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "allow-database"}, "spec": {
  "selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
  "envFrom": [{"configMapRef": {"name": "database"}}], "volumeMounts": [{"mountPath": "/cache", "name": "cache"}], "volumes": [{"name": "cache", "emptyDir": {}}]}}`

// TestPolicyOfAPreset has the admission plugin of an API server judge pods. It fails with the policy, which
// `convert` has written so that a failure leaves the pod as it is.
func TestPolicyOfAPreset(t *testing.T) {
	inject := policyPlugin(t, ofTheDocument)
	own := corev1.Container{
		Name: "own", Env: []corev1.EnvVar{{Name: "OWN", Value: "1"}}, VolumeMounts: []corev1.VolumeMount{{Name: "own", MountPath: "/own"}},
		EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "own"}}}},
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "empty"}}, Containers: []corev1.Container{own},
		Volumes: []corev1.Volume{{Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}}
	injected := func(c corev1.Container) corev1.Container {
		c.Env = append(c.Env, corev1.EnvVar{Name: "DB_PORT", Value: "6379"},
			corev1.EnvVar{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}})
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "database"}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cache", MountPath: "/cache"})
		return c
	}
	want := pod.DeepCopy()
	want.Spec.InitContainers[0], want.Spec.Containers[0] = injected(want.Spec.InitContainers[0]), injected(want.Spec.Containers[0])
	want.Spec.Volumes = append(want.Spec.Volumes, corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	if got := inject(pod); !equality.Semantic.DeepEqual(got.Spec, want.Spec) {
		t.Errorf("the pod is\n%+v\nwant\n%+v", got.Spec, want.Spec)
	}
	pod.Spec.Containers[0].Env[0].Name = "DB_PORT"
	if got := inject(pod); !equality.Semantic.DeepEqual(got.Spec, pod.Spec) {
		t.Errorf("a pod in conflict is\n%+v\nand was\n%+v", got.Spec, pod.Spec)
	}
}

// The tests of many are about the limits that the API server has for expressions: their length and depth.
func TestPolicyOfManyVariables(t *testing.T) {
	const count = 200
	var env []string
	for i := range count {
		env = append(env, fmt.Sprintf(`{"name": "A_NAME_OF_SOME_LENGTH_%d", "value": "A value of some length."}`, i))
	}
	inject := policyPlugin(t, `{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "many"}, "spec": {
  "selector": {"matchLabels": {"role": "frontend"}}, "env": [`+strings.Join(env, ", ")+`]}}`)
	pod := &corev1.Pod{}
	for i := range 10 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint(i)})
	}
	for _, c := range inject(pod).Spec.Containers {
		if len(c.Env) != count {
			t.Errorf("container %s has %d variables, want %d", c.Name, len(c.Env), count)
		}
	}
}

func TestPolicyOfManyVolumes(t *testing.T) {
	const count = 300
	var volumes, mounts []string
	for i := range count {
		volumes = append(volumes, fmt.Sprintf(`{"name": "v%d", "emptyDir": {}}`, i))
		mounts = append(mounts, fmt.Sprintf(`{"name": "v%d", "mountPath": "/v%d"}`, i, i))
	}
	inject := policyPlugin(t, `{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "many"}, "spec": {
  "selector": {"matchLabels": {"role": "frontend"}}, "volumes": [`+strings.Join(volumes, ", ")+`], "volumeMounts": [`+strings.Join(mounts, ", ")+`]}}`)
	spec := inject(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}}).Spec
	if volumes, mounts := len(spec.Volumes), len(spec.Containers[0].VolumeMounts); volumes != count || mounts != count {
		t.Errorf("the pod has %d volumes and %d mounts, want %d", volumes, mounts, count)
	}
}

func TestConvertRefusesAPresetThatInjectsNothing(t *testing.T) {
	var m Manifest
	if err := m.Read("empty", strings.NewReader(`{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "empty"}, "spec": {"selector": {"matchLabels": {"a": "b"}}}}`)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WritePolicies(&b, &m, "shop", "v1"); err == nil || !strings.Contains(err.Error(), "empty") || b.Len() > 0 {
		t.Errorf("got %v and %q, want an error that names the preset", err, b.String())
	}
}

// client publishes the schemas of a release.
type client struct{ *fake.Clientset }

func (c client) Discovery() discovery.DiscoveryInterfaces {
	return withSchemas{c.Clientset.Discovery()}
}

type withSchemas struct{ discovery.DiscoveryInterfaces }

func (withSchemas) OpenAPIV3() openapi.Client { return openapitest.NewEmbeddedFileClient() }

// policyPlugin returns what the admission plugin makes of a pod of the namespace shop, where the policy of
// preset is in force.
func policyPlugin(t *testing.T, preset string) func(*corev1.Pod) *corev1.Pod {
	t.Helper()
	var m Manifest
	if err := m.Read("preset", strings.NewReader(preset)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WritePolicies(&b, &m, "shop", "v1"); err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(b.String(), "\n---\n")
	policy, binding := &admissionv1.MutatingAdmissionPolicy{}, &admissionv1.MutatingAdmissionPolicyBinding{}
	for i, object := range []any{policy, binding} {
		if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-2+i]), object); err != nil {
			t.Fatal(err)
		}
	}
	policy.Spec.FailurePolicy, policy.Spec.MatchConstraints.MatchPolicy = new(admissionv1.Fail), new(admissionv1.Equivalent)
	clientset := client{fake.NewClientset(policy, binding, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{corev1.LabelMetadataName: "shop"}}})}
	plugin, err := mutating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	plugin.SetEnabled(true)
	policies.Start(t, plugin, clientset)
	inject := func(pod *corev1.Pod) (*corev1.Pod, error) {
		pod = pod.DeepCopy()
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		pod.ObjectMeta = metav1.ObjectMeta{Name: "pod", Namespace: "shop", Labels: map[string]string{"role": "frontend"}}
		return pod, plugin.Admit(context.Background(), admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "pod",
			corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, &user.DefaultInfo{Name: "somebody"}), admission.NewObjectInterfacesFromScheme(scheme.Scheme))
	}
	var last error // the plugin is ready when it has compiled the policy
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		pod, err := inject(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}}})
		last = err
		return err == nil && !equality.Semantic.DeepEqual(pod.Spec.Containers, []corev1.Container{{Name: "app"}}), nil
	}); err != nil {
		t.Fatalf("the policy never came into force: %v", errors.Join(err, last))
	}
	return func(pod *corev1.Pod) *corev1.Pod {
		t.Helper()
		injected, err := inject(pod)
		if err != nil {
			t.Fatal(err)
		}
		return injected
	}
}
