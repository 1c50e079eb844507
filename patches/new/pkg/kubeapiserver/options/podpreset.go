package options

import (
	"slices"

	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/kubernetes/plugin/pkg/admission/podpreset"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
)

// podPresetInitializer says to the plugin PodPreset whether the plugin ServiceAccount, which
// is on by default, runs after it.
type podPresetInitializer struct{ serviceAccounts bool }

var _ admission.PluginInitializer = podPresetInitializer{}

func newPodPresetInitializer(o *genericoptions.AdmissionOptions) podPresetInitializer {
	off := slices.Contains(o.DisablePlugins, serviceaccount.PluginName) && !slices.Contains(o.EnablePlugins, serviceaccount.PluginName)
	return podPresetInitializer{serviceAccounts: !off}
}

// Initialize implements admission.PluginInitializer.
func (i podPresetInitializer) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(*podpreset.Plugin); ok {
		p.SetServiceAccountPlugin(i.serviceAccounts)
	}
}
