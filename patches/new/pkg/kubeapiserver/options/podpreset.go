/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
