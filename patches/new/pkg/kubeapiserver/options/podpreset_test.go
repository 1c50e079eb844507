package options

import (
	"testing"

	"github.com/spf13/pflag"
)

func TestPodPresetKnowsWhetherPodsGetAServiceAccount(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		want  bool
	}{
		{"by default", nil, true},
		{"others are switched", []string{"--enable-admission-plugins=PodPreset", "--disable-admission-plugins=LimitRanger"}, true},
		{"off", []string{"--enable-admission-plugins=PodPreset", "--disable-admission-plugins=LimitRanger,ServiceAccount"}, false},
		{"on", []string{"--enable-admission-plugins=PodPreset,ServiceAccount"}, true},
		{"in a list of all that are on", []string{"--admission-control=PodPreset,ServiceAccount"}, true},
		{"not in a list of all that are on", []string{"--admission-control=PodPreset"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := NewAdmissionOptions()
			flags := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(flags)
			if err := flags.Parse(tt.flags); err != nil {
				t.Fatal(err)
			}
			if o.PluginNames != nil { // as ApplyTo does it
				o.GenericAdmission.EnablePlugins, o.GenericAdmission.DisablePlugins = computePluginNames(o.PluginNames, o.GenericAdmission.RecommendedPluginOrder)
			}
			if got := newPodPresetInitializer(o.GenericAdmission).serviceAccounts; got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}
