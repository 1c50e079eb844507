package expand

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"podenv.dev/hack/operator/preset"
)

// Options are what a dry run may use.
type Options struct {
	// Client reads ConfigMaps, Secrets and services. Without one those that the
	// manifest does not have are unknown.
	Client kubernetes.Interface
	// Namespace is that of objects that name none.
	Namespace string
	// Presets injects PodPresets into the pods. Nil for none.
	Presets *preset.Injector
	// ShowSecrets leaves the values of Secrets as they are.
	ShowSecrets bool
	// RelaxedNames is the kubelet's gate RelaxedEnvironmentVariableValidation, which decides
	// on keys that envFrom sets. Nil if it is not known.
	RelaxedNames *bool
}

// mask stands for a Secret's value.
const mask = "***"

// Pods returns what the pods of m start with, in the manifest's order. It returns
// an error if m has no pod, or if the cluster does not answer.
func Pods(ctx context.Context, m *Manifest, o Options) ([]Pod, error) {
	if len(m.workloads) == 0 {
		if len(m.other) == 0 {
			return nil, fmt.Errorf("%s: nothing in it; give a manifest with a pod or a workload", strings.Join(m.files, ", "))
		}
		return nil, fmt.Errorf("%s: no pod or workload in it, only %s; give a manifest with one", strings.Join(m.files, ", "), strings.Join(m.other, ", "))
	}
	objects := newObjects(m, o.Namespace, o.Client)
	pods := make([]Pod, 0, len(m.workloads))
	for i := range m.workloads {
		w := &m.workloads[i]
		w.meta.Namespace = orDefault(w.meta.Namespace, o.Namespace)
		pod := Pod{Kind: w.kind, Namespace: w.meta.Namespace, Name: orDefault(w.meta.Name, w.meta.GenerateName)}
		presetOf, err := pod.inject(ctx, w, o.Presets)
		if err != nil {
			return nil, err
		}
		links := w.pod.Spec.EnableServiceLinks == nil || *w.pod.Spec.EnableServiceLinks
		services, err := readServices(ctx, o.Client, w.meta.Namespace, links)
		if err != nil {
			return nil, err
		}
		for c, containerType := range podutil.ContainerIter(&w.pod.Spec, podutil.AllContainers) {
			start := &containerStart{
				workload: w, container: c, objects: objects, services: services, showSecrets: o.ShowSecrets, relaxedNames: o.RelaxedNames,
				result: Container{Name: c.Name, Type: typeOf(c, containerType), Env: []Variable{}},
			}
			if err := start.run(ctx); err != nil {
				return nil, err
			}
			for i, v := range start.result.Env {
				if from := presetOf[c.Name+"/"+v.Name]; from != "" && v.Source == ofManifest {
					start.result.Env[i].Source = "PodPreset " + from
				}
			}
			pod.Containers = append(pod.Containers, start.result)
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

// inject has w's pod get its presets. It returns which of them each variable, by
// CONTAINER/NAME, comes from.
func (p *Pod) inject(ctx context.Context, w *workload, presets *preset.Injector) (map[string]string, error) {
	if presets == nil {
		return nil, nil
	}
	pod := w.pod.DeepCopy()
	pod.Namespace = w.meta.Namespace
	if w.templated {
		pod.Name, pod.GenerateName = "", w.meta.Name+"-"
	}
	injected, err := presets.Into(ctx, w.kind, pod)
	if err != nil {
		return nil, err
	}
	own := map[string]bool{}
	for c := range podutil.ContainerIter(&w.pod.Spec, podutil.AllContainers) {
		for _, env := range c.Env {
			own[c.Name+"/"+env.Name] = true
		}
	}
	presetOf := map[string]string{}
	for c := range podutil.ContainerIter(&injected.Result.Spec, podutil.AllContainers) {
		for _, preset := range injected.Injected {
			for _, name := range preset.Env {
				if key := c.Name + "/" + name; !own[key] && presetOf[key] == "" {
					presetOf[key] = preset.Preset
				}
			}
		}
	}
	w.pod = injected.Result
	p.Injected, p.Conflicts = injected.Injected, injected.Conflicts
	return presetOf, nil
}
