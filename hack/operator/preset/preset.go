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
	for _, p := range m.presets {
		p.Namespace = cmp.Or(p.Namespace, o.Namespace)
	}
	var found []Pod
	byNamespace := map[string][]*inject.Preset{}
	for _, w := range m.pods {
		pod := w.pod.DeepCopy()
		pod.Namespace = cmp.Or(pod.Namespace, o.Namespace)
		defaults.SetObjectDefaults_Pod(pod)
		presets, ok := byNamespace[pod.Namespace]
		if !ok {
			all, err := o.clusterPresets(ctx, pod.Namespace)
			if err != nil {
				return nil, err
			}
			presets = prepared(append(all, m.presets...), pod.Namespace)
			byNamespace[pod.Namespace] = presets
		}
		found = append(found, o.pod(ctx, m, w.kind, pod, presets))
	}
	return found, nil
}

func (o *Options) pod(ctx context.Context, m *Manifest, kind string, pod *corev1.Pod, presets []*inject.Preset) Pod {
	p := Pod{Kind: kind, Namespace: pod.Namespace, Name: cmp.Or(pod.Name, pod.GenerateName), Result: pod, Injected: []Injected{}, Conflicts: []Conflict{}}
	if p.Exempt = inject.Exempt(pod); p.Exempt {
		return p
	}
	result := inject.Into(pod, presets, inject.Options{Keys: func(source *corev1.EnvFromSource) []string {
		return o.keys(ctx, m, pod.Namespace, source)
	}})
	for _, applied := range result.Applied {
		p.Injected = append(p.Injected, describe(applied))
	}
	for _, conflict := range result.Conflicts {
		p.Conflicts = append(p.Conflicts, Conflict{conflict.Preset.Name, conflict.Message()})
	}
	return p
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
func (o *Options) clusterPresets(ctx context.Context, namespace string) ([]*PodPreset, error) {
	if o.Dynamic == nil {
		return nil, nil
	}
	list, err := o.Dynamic.Resource(groupVersion.WithResource("podpresets")).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster does not serve %s: it needs the feature gate PodPreset, --runtime-config=%[1]s=true and the admission plugin PodPreset", groupVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("listing the PodPresets of namespace %s: %w", namespace, err)
	}
	var presets []*PodPreset
	for i := range list.Items {
		p := &PodPreset{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, p); err != nil {
			return nil, fmt.Errorf("reading PodPreset %s of namespace %s: %w", list.Items[i].GetName(), namespace, err)
		}
		presets = append(presets, p)
	}
	return presets, nil
}

// keys are those of the ConfigMap or Secret that source names, in the files or the cluster.
func (o *Options) keys(ctx context.Context, m *Manifest, namespace string, source *corev1.EnvFromSource) []string {
	for _, object := range m.objects {
		switch object := object.(type) {
		case *corev1.ConfigMap:
			if source.ConfigMapRef != nil && object.Name == source.ConfigMapRef.Name && cmp.Or(object.Namespace, o.Namespace) == namespace {
				return keysOf(object.Data, nil)
			}
		case *corev1.Secret:
			if source.SecretRef != nil && object.Name == source.SecretRef.Name && cmp.Or(object.Namespace, o.Namespace) == namespace {
				return append(keysOf(object.Data, nil), keysOf(object.StringData, nil)...)
			}
		}
	}
	if o.Client == nil {
		return nil
	}
	switch {
	case source.ConfigMapRef != nil:
		object, err := o.Client.CoreV1().ConfigMaps(namespace).Get(ctx, source.ConfigMapRef.Name, metav1.GetOptions{})
		return keysOf(object.Data, err)
	case source.SecretRef != nil:
		object, err := o.Client.CoreV1().Secrets(namespace).Get(ctx, source.SecretRef.Name, metav1.GetOptions{})
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
