package options

import (
	"strings"
	"testing"

	genericoptions "k8s.io/apiserver/pkg/server/options"
	_ "k8s.io/kubernetes/pkg/apis/settings/install"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

func TestPodPresetPluginNeedsItsAPI(t *testing.T) {
	const (
		gate    = "--feature-gates=PodPreset=true"
		runtime = "--runtime-config=settings.k8s.io/v1alpha1=true"
	)
	tests := []struct {
		name         string
		gate, plugin bool
		config       map[string]string
		missing      []string
	}{
		{name: "all off"},
		{name: "API only", gate: true, config: map[string]string{"settings.k8s.io/v1alpha1": "true"}},
		{name: "all on", gate: true, plugin: true, config: map[string]string{"settings.k8s.io/v1alpha1": "true"}},
		{name: "by api/alpha", gate: true, plugin: true, config: map[string]string{"api/alpha": "true"}},
		{name: "by api/alpha, but for the version", gate: true, plugin: true, config: map[string]string{"api/alpha": "true", "settings.k8s.io/v1alpha1": "false"}, missing: []string{runtime}},
		{name: "plugin only", plugin: true, missing: []string{gate, runtime}},
		{name: "plugin and gate", plugin: true, gate: true, missing: []string{runtime}},
		{name: "plugin and API without the gate", plugin: true, config: map[string]string{"settings.k8s.io/v1alpha1": "true"}, missing: []string{gate}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			featurestest.SetGate(t, features.PodPreset, tt.gate)
			o := &Options{
				Admission:     &kubeoptions.AdmissionOptions{GenericAdmission: &genericoptions.AdmissionOptions{}},
				APIEnablement: &genericoptions.APIEnablementOptions{RuntimeConfig: tt.config},
			}
			if tt.plugin {
				o.Admission.GenericAdmission.EnablePlugins = []string{"NodeRestriction", "PodPreset"}
			}
			errs := validatePodPreset(o)
			if (len(errs) > 0) != (len(tt.missing) > 0) {
				t.Fatalf("got %v, want %q", errs, tt.missing)
			}
			for _, flag := range []string{gate, runtime} {
				wanted := strings.Contains(strings.Join(tt.missing, " "), flag)
				if len(errs) > 0 && strings.Contains(errs[0].Error(), flag) != wanted {
					t.Errorf("%q names %s: %t, want %t", errs[0], flag, !wanted, wanted)
				}
			}
		})
	}
}
