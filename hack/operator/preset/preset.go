package preset

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"podenv.dev/staging/src/k8s.io/component-helpers/settings/inject"
)

// Options say where the presets are, beside those of the files.
type Options struct {
	// Client and Dynamic read a cluster: its presets, ConfigMaps and Secrets. Both are
	// nil for none.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Namespace is that of objects that name none.
	Namespace string
	// NoServiceAccount says that the API server's admission plugin ServiceAccount is off.
	NoServiceAccount bool
}

// Pod is what the presets of its namespace do to a pod.
type Pod struct {
	Kind      string `json:"kind"` // Pod, or the workload whose template it is
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Exempt says that presets leave the pod alone: by its annotation, or as the mirror
	// of a static pod.
	Exempt    bool       `json:"exempt,omitempty"`
	Injected  []Injected `json:"injected"`
	Conflicts []Conflict `json:"conflicts"`
	// Result is the pod as it would be created.
	Result *corev1.Pod `json:"result"`
}

// Injected is a preset that the pod gets.
type Injected struct {
	Preset  string   `json:"preset"`
	Env     []string `json:"env,omitempty"` // names
	EnvFrom []string `json:"envFrom,omitempty"`
	Mounts  []string `json:"mounts,omitempty"` // paths
	Volumes []string `json:"volumes,omitempty"`
}

// Conflict is a preset that the pod does not get.
type Conflict struct {
	Preset string `json:"preset"`
	// Message is that of the event on the pod.
	Message string `json:"message"`
}

// Pods works out what presets do to the pods of m.
func Pods(ctx context.Context, m *Manifest, o Options) ([]Pod, error) {
	if len(m.pods) == 0 {
		return nil, fmt.Errorf("%s: no pod or workload in it", strings.Join(m.files, ", "))
	}
	injector := NewInjector(m, o)
	var found []Pod
	for _, w := range m.pods {
		p, err := injector.Into(ctx, w.kind, w.pod)
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

// Injector injects presets into pods as the API server would.
type Injector struct {
	Options
	manifest    *Manifest
	byNamespace map[string][]*inject.Preset
}

// NewInjector returns an Injector of the presets of m, which may have no pod, and of those
// of the cluster that o names.
func NewInjector(m *Manifest, o Options) *Injector {
	for _, p := range m.presets {
		p.Namespace = cmp.Or(p.Namespace, o.Namespace)
	}
	return &Injector{Options: o, manifest: m, byNamespace: map[string][]*inject.Preset{}}
}

// Into works out what presets do to a pod, which it leaves as it is. kind is that of the
// object that the pod is made from. The error is that of a cluster that does not serve
// presets.
func (i *Injector) Into(ctx context.Context, kind string, pod *corev1.Pod) (Pod, error) {
	pod = pod.DeepCopy()
	pod.Namespace = cmp.Or(pod.Namespace, i.Namespace)
	defaults.SetObjectDefaults_Pod(pod)
	presets, ok := i.byNamespace[pod.Namespace]
	if !ok {
		all, err := i.clusterPresets(ctx, pod.Namespace)
		if err != nil {
			return Pod{}, err
		}
		presets = prepared(stored(all, i.manifest.presets), pod.Namespace)
		i.byNamespace[pod.Namespace] = presets
	}
	p := Pod{Kind: kind, Namespace: pod.Namespace, Name: cmp.Or(pod.Name, pod.GenerateName), Result: pod, Injected: []Injected{}, Conflicts: []Conflict{}}
	if p.Exempt = inject.Exempt(pod); p.Exempt {
		return p, nil
	}
	keys := func(source *corev1.EnvFromSource) []string { return i.keys(ctx, pod.Namespace, source) }
	result, err := inject.Into(ctx, pod, presets, inject.Options{Keys: keys, NoServiceAccount: i.NoServiceAccount})
	if err != nil {
		return Pod{}, err
	}
	for _, applied := range result.Applied {
		p.Injected = append(p.Injected, describe(applied))
	}
	for _, conflict := range result.Conflicts {
		p.Conflicts = append(p.Conflicts, Conflict{conflict.Preset.Name, conflict.Message()})
	}
	return p, nil
}

func describe(p *inject.Preset) Injected {
	d := Injected{Preset: p.Name}
	for _, env := range p.Env {
		d.Env = append(d.Env, env.Name)
	}
	for _, source := range p.EnvFrom {
		switch {
		case source.ConfigMapRef != nil:
			d.EnvFrom = append(d.EnvFrom, "ConfigMap "+source.ConfigMapRef.Name)
		case source.SecretRef != nil:
			d.EnvFrom = append(d.EnvFrom, "Secret "+source.SecretRef.Name)
		}
	}
	for _, mount := range p.VolumeMounts {
		d.Mounts = append(d.Mounts, mount.MountPath)
	}
	for _, volume := range p.Volumes {
		d.Volumes = append(d.Volumes, volume.Name)
	}
	return d
}

// clusterPresets lists the presets that a namespace of the cluster has. A cluster that does
// not serve them is an error: it would inject nothing.
func (i *Injector) clusterPresets(ctx context.Context, namespace string) ([]*PodPreset, error) {
	if i.Dynamic == nil {
		return nil, nil
	}
	list, err := i.Dynamic.Resource(groupVersion.WithResource("podpresets")).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster does not serve %s: it needs the feature gate PodPreset, --runtime-config=%[1]s=true and the admission plugin PodPreset", groupVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the PodPresets of namespace %s: %w", namespace, err)
	}
	var presets []*PodPreset
	for _, item := range list.Items {
		p := &PodPreset{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, p); err != nil {
			return nil, fmt.Errorf("reading PodPreset %s of namespace %s: %w", item.GetName(), namespace, err)
		}
		presets = append(presets, p)
	}
	return presets, nil
}

// keys are those of the ConfigMap or Secret that source names, in the files or the cluster.
func (i *Injector) keys(ctx context.Context, namespace string, source *corev1.EnvFromSource) []string {
	for _, object := range i.manifest.objects {
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if source.ConfigMapRef != nil && object.Name == source.ConfigMapRef.Name && cmp.Or(object.Namespace, i.Namespace) == namespace {
				return keysOf(object.Data, nil)
			}
		case *corev1.Secret:
			if source.SecretRef != nil && object.Name == source.SecretRef.Name && cmp.Or(object.Namespace, i.Namespace) == namespace {
				return append(keysOf(object.Data, nil), keysOf(object.StringData, nil)...)
			}
		}
	}
	if i.Client == nil {
		return nil
	}
	switch {
	case source.ConfigMapRef != nil:
		object, err := i.Client.CoreV1().ConfigMaps(namespace).Get(ctx, source.ConfigMapRef.Name, metav1.GetOptions{})
		return keysOf(object.Data, err)
	case source.SecretRef != nil:
		object, err := i.Client.CoreV1().Secrets(namespace).Get(ctx, source.SecretRef.Name, metav1.GetOptions{})
		return keysOf(object.Data, err)
	}
	return nil
}

// keysOf is nil where reading the object failed: what cannot be known is no conflict.
func keysOf[V any](data map[string]V, err error) []string {
	if err != nil {
		return nil
	}
	var keys []string
	for key := range data {
		keys = append(keys, key)
	}
	return keys
}
