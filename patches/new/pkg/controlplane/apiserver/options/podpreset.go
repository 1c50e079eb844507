package options

import (
	"fmt"
	"slices"
	"strings"

	settingsv1alpha1 "k8s.io/api/settings/v1alpha1"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/features"
)

// validatePodPreset refuses the admission plugin PodPreset without the API that it watches:
// it would never be ready, and neither would the API server.
func validatePodPreset(options *Options) []error {
	const plugin = "PodPreset"
	admission := options.Admission
	if admission == nil || admission.GenericAdmission == nil {
		return nil
	}
	if !slices.Contains(admission.GenericAdmission.EnablePlugins, plugin) && !slices.Contains(admission.PluginNames, plugin) {
		return nil
	}
	var missing []string
	if !utilfeature.DefaultFeatureGate.Enabled(features.PodPreset) {
		missing = append(missing, "--feature-gates=PodPreset=true")
	}
	version := settingsv1alpha1.SchemeGroupVersion
	config := serverstorage.NewResourceConfig()
	config.DisableVersions(version)
	merged, err := resourceconfig.MergeAPIResourceConfigs(config, options.APIEnablement.RuntimeConfig, legacyscheme.Scheme)
	if err != nil {
		return nil // Said by the validation of --runtime-config.
	}
	if !merged.ResourceEnabled(version.WithResource("podpresets")) {
		missing = append(missing, fmt.Sprintf("--runtime-config=%s=true", version))
	}
	if len(missing) == 0 {
		return nil
	}
	return []error{fmt.Errorf("the admission plugin %s needs the API %s: add %s, or take %s out of --enable-admission-plugins", plugin, version, strings.Join(missing, " and "), plugin)}
}
