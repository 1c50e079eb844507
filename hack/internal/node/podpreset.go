package node

import (
	"slices"
	"strings"

	"podenv.dev/featuregates"
)

// PodPreset has three switches in the API server, which are all on or all off here: the
// feature gate, the version of the API, and the admission plugin. The API server refuses to
// start with the plugin alone, and an API server that does not have the feature knows none
// of them.
const (
	podPreset        = string(featuregates.PodPreset)
	podPresetVersion = "settings.k8s.io/v1alpha1"
	runtimeConfig    = "--runtime-config="
	admissionPlugins = "--enable-admission-plugins="
)

// setPodPreset returns the words of an API server's command with the switches beside the
// gate on or off.
func setPodPreset(words []string, on bool) []string {
	words = setListItem(words, runtimeConfig, podPresetVersion+"=true", on)
	return setListItem(words, admissionPlugins, podPreset, on)
}

// setListItem puts an item into the list that is the value of a flag, or takes it out. A
// flag whose list is empty is left out.
func setListItem(words []string, flag, item string, in bool) []string {
	var out []string
	found := false
	for _, word := range words {
		list, ok := strings.CutPrefix(word, flag)
		if !ok {
			out = append(out, word)
			continue
		}
		found = true
		items := slices.DeleteFunc(strings.Split(list, ","), func(i string) bool { return i == item || i == "" })
		if in {
			items = append(items, item)
		}
		if len(items) > 0 {
			out = append(out, flag+strings.Join(items, ","))
		}
	}
	if in && !found {
		out = append(out, flag+item)
	}
	return out
}
