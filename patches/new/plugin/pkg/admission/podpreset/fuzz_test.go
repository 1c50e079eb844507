package podpreset

import (
	"context"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/settings/inject"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	_ "k8s.io/kubernetes/pkg/apis/settings/install"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	registrypod "k8s.io/kubernetes/pkg/registry/core/pod"
)

// FuzzInjectedPodIsValid makes a pod and presets of shape. If the API server takes the pod, it
// takes the pod with what the plugin has injected too, also after a webhook has added a
// container and the plugin has run again.
func FuzzInjectedPodIsValid(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("a pod of few containers, and presets that bring what the pod has in another form"))
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 32; i++ {
		f.Add(randomShape(random))
	}
	p := newFuzzedPlugin(f)
	f.Fuzz(func(t *testing.T, shape []byte) { p.run(t, shape) })
}

// reasons are the conflicts that random pods and presets have to come to.
var reasons = []string{
	"Duplicate env ", "Duplicate envFrom ", "Duplicate mountPath ", "Duplicate volume ", "sets too", "is a device of",
	"is not privileged", "holds env files", "is not an emptyDir", "have the same claim", "are too long for a claim",
	"has a token of a service account", "no room for another annotation",
}

// TestInjectedPodIsValid runs more shapes than are worth to be seeds, and checks that they show
// something: many of the pods are valid, and there is every kind of conflict.
func TestInjectedPodIsValid(t *testing.T) {
	const shapes = 10_000
	p := newFuzzedPlugin(t)
	random := rand.New(rand.NewSource(2))
	for i := 0; i < shapes; i++ {
		p.run(t, randomShape(random))
	}
	t.Logf("%d valid pods, %d with another container, %d presets applied, conflicts: %v", p.valid, p.again, p.applied, p.conflicts)
	if p.valid < shapes/5 || p.again < shapes/10 || p.applied < shapes/20 {
		t.Errorf("of %d shapes, %d pods are valid, %d with another container, and %d presets were applied: want more", shapes, p.valid, p.again, p.applied)
	}
	for _, reason := range reasons {
		if p.conflicts[reason] == 0 {
			t.Errorf("no preset was in conflict because of %q", reason)
		}
	}
}

func randomShape(random *rand.Rand) []byte {
	shape := make([]byte, 256)
	random.Read(shape)
	return shape
}

// fuzzedPlugin is the plugin, and counts what it has been shown.
type fuzzedPlugin struct {
	*Plugin
	client *fake.Clientset

	valid, again, applied int            // pods, pods with the webhook's container, and presets
	conflicts             map[string]int // by reason
}

func newFuzzedPlugin(tb testing.TB) *fuzzedPlugin {
	featurestest.SetGate(tb, features.EnvFiles, true)
	p := &fuzzedPlugin{conflicts: map[string]int{}}
	p.Plugin, p.client = newPlugin(tb, true, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "source-0", Namespace: namespace}, Data: map[string]string{"NAME_0": "1", "0": "1"}})
	return p
}

func (p *fuzzedPlugin) run(t *testing.T, shape []byte) {
	t.Helper()
	m := &maker{bytes: shape}
	p.SetServiceAccountPlugin(!m.one(4))
	pod, fromWebhook := m.pod()
	if len(p.refusals(pod)) > 0 {
		return // before presets are made, which takes a fifth of the time
	}
	p.valid++
	p.presets.namespaces = map[string][]*inject.Preset{}
	for i, n := 0, 1+m.upTo(3); i < n; i++ {
		p.presets.set(m.preset(i))
	}
	p.client.ClearActions() // they would fill the memory
	a := &reinvocation{Attributes: attributes(pod, false), values: map[string]interface{}{}}
	p.inject(t, a)
	for _, preset := range p.presets.in(namespace) {
		if _, ok := pod.Annotations[inject.AppliedAnnotation(preset.Name)]; ok {
			p.applied++
		}
	}

	pod.Spec.Containers = append(pod.Spec.Containers, fromWebhook)
	if len(p.refusals(pod)) > 0 {
		return
	}
	p.again++
	a.SetIsReinvoke()
	p.inject(t, a)
}

// inject runs the plugin on a valid pod, which has to stay valid.
func (p *fuzzedPlugin) inject(t *testing.T, a admission.Attributes) {
	t.Helper()
	pod := a.GetObject().(*api.Pod)
	before := pod.DeepCopy()
	var said warnings
	if err := p.Admit(warning.WithWarningRecorder(context.Background(), &said), a, nil); err != nil {
		t.Fatalf("the pod is refused: %v", err)
	}
	for _, reason := range reasons {
		if strings.Contains(strings.Join(said, "\n"), reason) {
			p.conflicts[reason]++
		}
	}
	if errs := p.refusals(pod); len(errs) > 0 {
		t.Fatalf("the API server refuses the pod as injected: %v\nthe pod: %s\nas injected: %s\nwarnings: %q", errs, shown(t, before), shown(t, pod), said)
	}
}

func shown(t *testing.T, pod *api.Pod) []byte {
	t.Helper()
	text, err := runtime.Encode(legacyscheme.Codecs.LegacyCodec(v1.SchemeGroupVersion), pod)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refusals are the errors with which the API server refuses to create pod.
func (p *fuzzedPlugin) refusals(pod *api.Pod) field.ErrorList {
	ctx := genericapirequest.WithNamespace(context.Background(), namespace)
	pod = pod.DeepCopy()
	rest.FillObjectMetaSystemFields(pod)
	if pod.Name == "" {
		pod.Name = registrypod.Strategy.GenerateName(pod.GenerateName)
	}
	if p.serviceAccounts && pod.Spec.ServiceAccountName == "" {
		// As the plugin ServiceAccount does it, which is next. v1.37 has both fields.
		for _, name := range []string{"ServiceAccountName", "DeprecatedServiceAccount"} {
			if f := reflect.ValueOf(&pod.Spec).Elem().FieldByName(name); f.IsValid() {
				f.SetString("default")
			}
		}
	}
	registrypod.Strategy.PrepareForCreate(ctx, pod)
	return registrypod.Strategy.Validate(ctx, pod)
}

// maker makes pods and presets of bytes, with few names and paths, so that they often meet.
type maker struct{ bytes []byte }

// upTo is a number from 0 to n-1. Bytes that are missing are 0.
func (m *maker) upTo(n int) int {
	if len(m.bytes) == 0 {
		return 0
	}
	b := m.bytes[0]
	m.bytes = m.bytes[1:]
	return int(b) % n
}

// one is true once in n times.
func (m *maker) one(n int) bool { return m.upTo(n) == n-1 }

// pod makes a pod, and a container that is not in it yet.
func (m *maker) pod() (*api.Pod, api.Container) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "website", Namespace: namespace, Labels: map[string]string{"role": "frontend"}}}
	switch m.upTo(8) {
	case 6:
		pod.Name, pod.GenerateName = "", "website-"
	case 7:
		pod.Name = strings.Repeat("w", 246)
	}
	if m.one(16) {
		pod.Annotations = map[string]string{"large": strings.Repeat("x", 256*1024-60)}
	}
	if m.one(16) {
		pod.Spec.OS = &v1.PodOS{Name: v1.Windows}
	}
	if m.one(8) {
		pod.Spec.ServiceAccountName = "own"
	}
	for i, n := 0, m.upTo(4); i < n; i++ {
		pod.Spec.Volumes = append(pod.Spec.Volumes, m.volume(i, pod.Name))
	}
	for i, n := 0, m.upTo(3); i < n; i++ {
		c := m.container(fmt.Sprintf("init-%d", i), pod.Spec.Volumes)
		if m.one(2) {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i, n := 0, 2+m.upTo(2); i < n; i++ {
		pod.Spec.Containers = append(pod.Spec.Containers, m.container(fmt.Sprintf("c-%d", i), pod.Spec.Volumes))
	}
	legacyscheme.Scheme.Default(pod)
	internal := &api.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		panic(err) // it is of known fields only
	}
	last := len(internal.Spec.Containers) - 1
	fromWebhook := internal.Spec.Containers[last]
	internal.Spec.Containers = internal.Spec.Containers[:last:last]
	return internal, fromWebhook
}

func (m *maker) container(name string, volumes []v1.Volume) v1.Container {
	c := v1.Container{Name: name, Image: "ecorp/website", TerminationMessagePolicy: v1.TerminationMessageReadFile, Env: m.env(), EnvFrom: m.envFrom()}
	if m.one(3) {
		privileged := true
		c.SecurityContext = &v1.SecurityContext{Privileged: &privileged}
	}
	if len(volumes) == 0 {
		return c
	}
	for i, n := 0, m.upTo(3); i < n; i++ {
		volume := volumes[m.upTo(len(volumes))]
		if volume.PersistentVolumeClaim != nil && m.one(2) {
			c.VolumeDevices = append(c.VolumeDevices, v1.VolumeDevice{Name: volume.Name, DevicePath: m.path(i)})
			continue
		}
		c.VolumeMounts = append(c.VolumeMounts, m.mount(i, volume.Name))
	}
	return c
}

// preset makes a preset as an API server sends it. It may be one that no API server stores.
func (m *maker) preset(i int) *settingsv1alpha1.PodPreset {
	preset := database()
	preset.Name, preset.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprint(i))
	preset.Spec.Env, preset.Spec.EnvFrom = m.env(), m.envFrom()
	preset.Spec.Volumes, preset.Spec.VolumeMounts = nil, nil
	for i, n := 0, m.upTo(3); i < n; i++ {
		volume := m.volume(m.upTo(4), "website")
		preset.Spec.Volumes = append(preset.Spec.Volumes, volume)
		preset.Spec.VolumeMounts = append(preset.Spec.VolumeMounts, m.mount(i, volume.Name))
	}
	if m.one(4) {
		// At two paths.
		for i := range preset.Spec.Volumes {
			preset.Spec.VolumeMounts = append(preset.Spec.VolumeMounts, m.mount(i+2, preset.Spec.Volumes[i].Name))
		}
	}
	legacyscheme.Scheme.Default(preset)
	return preset
}

func (m *maker) path(i int) string { return fmt.Sprintf("/path/%d", 2*i+m.upTo(2)) }

func (m *maker) mount(i int, volume string) v1.VolumeMount {
	mount := v1.VolumeMount{Name: volume, MountPath: m.path(i)}
	switch m.upTo(8) {
	case 4:
		mount.SubPath = "sub"
	case 5:
		mount.SubPathExpr = "$(NAME_0)"
	case 6:
		propagation := v1.MountPropagationBidirectional
		mount.MountPropagation = &propagation
	case 7:
		mount.ReadOnly = true
	}
	return mount
}

// volume makes a volume that may share a claim with another of the pod.
func (m *maker) volume(i int, pod string) v1.Volume {
	volume := v1.Volume{Name: fmt.Sprintf("volume-%d", i)}
	source := &volume.VolumeSource
	switch m.upTo(12) {
	default:
		source.EmptyDir = &v1.EmptyDirVolumeSource{}
	case 3:
		source.HostPath = &v1.HostPathVolumeSource{Path: "/srv"}
	case 4:
		source.Secret = &v1.SecretVolumeSource{SecretName: "source-1"}
	case 5:
		source.DownwardAPI = &v1.DownwardAPIVolumeSource{Items: []v1.DownwardAPIVolumeFile{{Path: "labels", FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.labels"}}}}
	case 6:
		source.Projected = &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}}}}
	case 7:
		source.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("%s-volume-%d", pod, m.upTo(4))}
	case 8:
		source.Ephemeral = &v1.EphemeralVolumeSource{VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		}}}
	}
	return volume
}

func (m *maker) env() []v1.EnvVar {
	var env []v1.EnvVar
	for i, n := 0, m.upTo(4); i < n; i++ {
		variable := v1.EnvVar{Name: fmt.Sprintf("NAME_%d", m.upTo(8))}
		source := &v1.EnvVarSource{}
		switch m.upTo(10) {
		default:
			variable.Value, source = fmt.Sprint(m.upTo(2)), nil
		case 4:
			source.FieldRef = &v1.ObjectFieldSelector{FieldPath: "metadata.name"}
		case 5:
			source.ResourceFieldRef = &v1.ResourceFieldSelector{Resource: "limits.cpu"}
		case 6:
			source.SecretKeyRef = &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "source-1"}, Key: "k"}
		case 7:
			source.FileKeyRef = &v1.FileKeySelector{VolumeName: fmt.Sprintf("volume-%d", m.upTo(4)), Path: "f", Key: variable.Name}
		}
		variable.ValueFrom = source
		env = append(env, variable)
	}
	return env
}

// envFrom makes sources, of which the ConfigMap source-0 exists.
func (m *maker) envFrom() []v1.EnvFromSource {
	var sources []v1.EnvFromSource
	for i, n := 0, m.upTo(4)-1; i < n; i++ {
		of, optional := v1.LocalObjectReference{Name: fmt.Sprintf("source-%d", m.upTo(2))}, m.one(2)
		source := v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: of, Optional: &optional}}
		if m.one(2) {
			source.Prefix = "NAME_"
		}
		if m.one(4) {
			source = v1.EnvFromSource{SecretRef: &v1.SecretEnvSource{LocalObjectReference: of, Optional: &optional}}
		}
		sources = append(sources, source)
	}
	return sources
}
