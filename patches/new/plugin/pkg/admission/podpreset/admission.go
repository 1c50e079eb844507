// Package podpreset holds the admission plugin PodPreset, which injects the PodPresets of a
// namespace into pods when they are created, and raises an event on the pod for each that
// is in conflict with it. What is injected, and what a conflict is, is decided by
// k8s.io/component-helpers/settings/inject.
package podpreset

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	genericadmissioninitializer "k8s.io/apiserver/pkg/admission/initializer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-helpers/settings/inject"
	"k8s.io/klog/v2"
	podpresetutil "k8s.io/kubernetes/pkg/api/podpreset"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/features"
)

// PluginName is the name of the plugin.
const PluginName = "PodPreset"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(io.Reader) (admission.Interface, error) {
		return NewPlugin(), nil
	})
}

// Plugin injects PodPresets into new pods.
type Plugin struct {
	*admission.Handler

	// enabled is what the feature gate says, and inspected that it has been asked.
	enabled, inspected bool

	// serviceAccounts says that a pod that names no service account will have one.
	serviceAccounts bool

	client  kubernetes.Interface
	presets *presetCache
	events  *eventQueue
	stopCh  <-chan struct{}
	now     func() time.Time

	// found are the conflicts in requests that are under way, by their *RequestInfo: Validate
	// has neither Admit's attributes nor its pod. Worked out again from the pod as it will be
	// stored, a conflict may be gone, as a younger preset has brought the same.
	found sync.Map
}

var (
	_ admission.MutationInterface                                  = &Plugin{}
	_ admission.ValidationInterface                                = &Plugin{}
	_ genericadmissioninitializer.WantsExternalKubeInformerFactory = &Plugin{}
	_ genericadmissioninitializer.WantsExternalKubeClientSet       = &Plugin{}
	_ genericadmissioninitializer.WantsFeatures                    = &Plugin{}
	_ genericadmissioninitializer.WantsDrainedNotification         = &Plugin{}
)

// NewPlugin returns a plugin that is to be initialized.
func NewPlugin() *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create), now: time.Now}
}

// InspectFeatureGates notes whether the feature is on.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(features.PodPreset)
	p.inspected = true
}

// SetServiceAccountPlugin says whether the plugin ServiceAccount is on. It comes after this
// one, and gives the pods that name no service account the one called default.
func (p *Plugin) SetServiceAccountPlugin(on bool) {
	p.serviceAccounts = on
}

// SetDrainedNotification sets the channel that is closed when the API server has ended.
func (p *Plugin) SetDrainedNotification(stopCh <-chan struct{}) {
	p.stopCh = stopCh
}

// SetExternalKubeClientSet sets the client that reads ConfigMaps, Secrets and pods, and
// writes events.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) {
	p.client = client
	p.events = newEventQueue(client, p.stopCh)
}

// SetExternalKubeInformerFactory has the presets watched, if the feature is on.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if !p.enabled {
		return
	}
	var err error
	if p.presets, err = newPresetCache(factory.Settings().V1alpha1().PodPresets().Informer()); err != nil {
		klog.ErrorS(err, "Cannot watch PodPresets")
		return
	}
	p.SetReadyFunc(p.presets.synced)
	podpresetutil.Injecting.Store(true)
}

// ValidateInitialization checks that the plugin has all that it needs.
func (p *Plugin) ValidateInitialization() error {
	switch {
	case !p.inspected:
		return fmt.Errorf("the admission plugin %s has not been told of the feature gates", PluginName)
	case !p.enabled:
		return nil
	case p.client == nil:
		return fmt.Errorf("the admission plugin %s has no client", PluginName)
	case p.presets == nil:
		return fmt.Errorf("the admission plugin %s does not watch PodPresets", PluginName)
	}
	return nil
}

// Admit injects the presets that match the pod.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, presets, err := p.matching(a)
	if err != nil || len(presets) == 0 {
		return err
	}
	options := p.options(ctx, a.GetNamespace())
	options.Before, _ = a.GetReinvocationContext().Value(PluginName).(inject.Record)

	injected := &v1.Pod{} // shares what it holds with pod
	if err := corev1.Convert_core_Pod_To_v1_Pod(pod, injected, nil); err != nil {
		return admission.NewForbidden(a, err)
	}
	result, err := inject.Into(ctx, injected, presets, options)
	if err != nil {
		return err
	}
	internal := &api.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(injected, internal, nil); err != nil {
		return admission.NewForbidden(a, err)
	}
	pod.Annotations, pod.Spec = internal.Annotations, internal.Spec
	a.GetReinvocationContext().SetValue(PluginName, result.Record)
	for _, conflict := range result.Conflicts {
		where := ""
		if result.Record[conflict.Preset.UID] != nil {
			where = " into all containers"
		}
		warning.AddWarning(ctx, "", fmt.Sprintf("PodPreset %s is not injected%s: %s", conflict.Preset.Name, where, conflict.Message()))
		// Fails where an earlier pass has said it.
		_ = a.AddAnnotation(inject.AnnotationPrefix+"conflict-"+conflict.Preset.Name, strings.Join(conflict.Reasons, ". "))
	}
	p.note(ctx, result.Conflicts)
	return nil
}

// note keeps conflicts for Validate, until the request ends.
func (p *Plugin) note(ctx context.Context, conflicts []inject.Conflict) {
	request, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok || len(conflicts) == 0 {
		return
	}
	if earlier, again := p.found.Load(request); again {
		conflicts = append(earlier.([]inject.Conflict), conflicts...)
	}
	p.found.Store(request, conflicts)
	// Each time: the request may have ended, and the earlier ones been deleted, before this Store.
	context.AfterFunc(ctx, func() { p.found.Delete(request) })
}

// Validate raises an event for each conflict. It sees the pod with its name and UID, which it
// has not yet when presets are injected.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	request, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok || a.IsDryRun() {
		return nil
	}
	conflicts, found := p.found.Load(request)
	pod, ok := a.GetObject().(*api.Pod)
	if found && ok {
		p.events.add(a.GetNamespace(), pod.Name, pod.UID, conflicts.([]inject.Conflict))
	}
	return nil
}

// matching returns the pod of a request that creates one, and the presets that may be
// injected into it.
func (p *Plugin) matching(a admission.Attributes) (*api.Pod, []*inject.Preset, error) {
	if !p.enabled || a.GetSubresource() != "" || a.GetResource().GroupResource() != api.Resource("pods") {
		return nil, nil, nil
	}
	if !p.presets.ready.Load() {
		if !p.WaitForReady() {
			return nil, nil, admission.NewForbidden(a, fmt.Errorf("not yet ready to handle the request: the PodPresets are not known yet"))
		}
		p.presets.ready.Store(true)
	}
	all := p.presets.in(a.GetNamespace())
	pod, ok := a.GetObject().(*api.Pod)
	if !ok || inject.Exempt(pod) {
		return nil, nil, nil
	}
	if a.GetReinvocationContext().IsReinvoke() {
		// What matched before counts, whatever the labels are now.
		return pod, all, nil
	}
	var matching []*inject.Preset
	for _, preset := range all {
		if preset.Selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, preset)
		}
	}
	return pod, matching, nil
}

// lookUpTimeout bounds how long one pass over a pod waits for all ConfigMaps and Secrets: a
// preset has room for thousands of them.
const lookUpTimeout = 2 * time.Second

// options are those of an injection into a pod of namespace. What cannot be read in time
// counts as unknown.
func (p *Plugin) options(ctx context.Context, namespace string) inject.Options {
	var deadline time.Time
	keys := func(source *v1.EnvFromSource) []string {
		if deadline.IsZero() {
			deadline = p.now().Add(lookUpTimeout)
		}
		left := deadline.Sub(p.now())
		if left <= 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		switch {
		case source.ConfigMapRef != nil:
			if found, err := p.client.CoreV1().ConfigMaps(namespace).Get(ctx, source.ConfigMapRef.Name, metav1.GetOptions{}); err == nil {
				return keysOf(found.Data)
			}
		case source.SecretRef != nil:
			if found, err := p.client.CoreV1().Secrets(namespace).Get(ctx, source.SecretRef.Name, metav1.GetOptions{}); err == nil {
				return keysOf(found.Data)
			}
		}
		return nil
	}
	return inject.Options{Keys: keys, NoServiceAccount: !p.serviceAccounts}
}

func keysOf[V any](data map[string]V) []string {
	keys := make([]string, 0, len(data))
	for key := range data {
		keys = append(keys, key)
	}
	return keys
}
