package podpreset

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/settings/inject"
	podpresetutil "k8s.io/kubernetes/pkg/api/podpreset"
	"k8s.io/kubernetes/pkg/apis/settings"
	conversion "k8s.io/kubernetes/pkg/apis/settings/v1alpha1"
	"k8s.io/kubernetes/pkg/apis/settings/validation"
)

// presetCache holds the presets of each namespace, prepared, and in the order in which they
// are applied. A pod of a namespace without presets costs one look into a map.
type presetCache struct {
	synced func() bool
	// ready is set once synced has been true.
	ready atomic.Bool

	mu         sync.RWMutex
	namespaces map[string][]*inject.Preset // a slice is replaced, never changed
}

func newPresetCache(informer cache.SharedIndexInformer) (*presetCache, error) {
	c := &presetCache{namespaces: map[string][]*inject.Preset{}}
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.set(obj.(*settingsv1alpha1.PodPreset)) },
		UpdateFunc: func(_, obj any) { c.set(obj.(*settingsv1alpha1.PodPreset)) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if preset, ok := obj.(*settingsv1alpha1.PodPreset); ok {
				c.remove(preset.Namespace, preset.Name)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	c.synced = registration.HasSynced
	return c, nil
}

// in returns the presets of a namespace, the oldest first.
func (c *presetCache) in(namespace string) []*inject.Preset {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.namespaces[namespace]
}

// set adds or replaces a preset. One that is being deleted is injected no more.
func (c *presetCache) set(object *settingsv1alpha1.PodPreset) {
	if object.DeletionTimestamp != nil {
		c.remove(object.Namespace, object.Name)
		return
	}
	preset := prepare(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	presets := without(c.namespaces[object.Namespace], object.Name)
	at := sort.Search(len(presets), func(i int) bool { return inject.Compare(presets[i], preset) > 0 })
	c.namespaces[object.Namespace] = slices.Insert(presets, at, preset)
}

func (c *presetCache) remove(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if presets := without(c.namespaces[namespace], name); len(presets) > 0 {
		c.namespaces[namespace] = presets
	} else {
		delete(c.namespaces, namespace)
	}
}

// without copies presets, but for the one called name.
func without(presets []*inject.Preset, name string) []*inject.Preset {
	left := make([]*inject.Preset, 0, len(presets)+1)
	for _, preset := range presets {
		if preset.Name != name {
			left = append(left, preset)
		}
	}
	return left
}

// prepare makes of object what is injected. A preset may have been stored while other
// feature gates were on than those of this API server: fields that pods cannot have are
// dropped as a pod's would be, and if the rest is not valid, no pod gets any of it.
func prepare(object *settingsv1alpha1.PodPreset) *inject.Preset {
	preset := &inject.Preset{
		Name:            object.Name,
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Created:         object.CreationTimestamp,
		Selector:        labels.Nothing(),
	}
	object = object.DeepCopy() // the conversion shares memory, and fields are dropped in place
	internal := &settings.PodPreset{}
	if err := conversion.Convert_v1alpha1_PodPreset_To_settings_PodPreset(object, internal, nil); err != nil {
		preset.Broken = "The preset cannot be converted"
		return preset
	}
	podpresetutil.DropDisabledFields(internal, nil)
	if selector, err := metav1.LabelSelectorAsSelector(&object.Spec.Selector); err == nil {
		preset.Selector = selector
	}
	if errs := validation.ValidatePodPreset(internal, podpresetutil.ValidationOptions(internal, nil)); len(errs) > 0 {
		var fields []string
		for _, err := range errs {
			if !slices.Contains(fields, err.Field) {
				fields = append(fields, err.Field)
			}
		}
		preset.Broken = "The preset is not valid with the feature gates of this API server: " + strings.Join(fields[:min(len(fields), 10)], ", ")
		return preset
	}
	spec := &settingsv1alpha1.PodPresetSpec{}
	if err := conversion.Convert_settings_PodPresetSpec_To_v1alpha1_PodPresetSpec(&internal.Spec, spec, nil); err != nil {
		preset.Broken = "The preset cannot be converted"
		return preset
	}
	preset.Env, preset.EnvFrom = spec.Env, spec.EnvFrom
	preset.Volumes, preset.VolumeMounts = spec.Volumes, spec.VolumeMounts
	return preset
}
