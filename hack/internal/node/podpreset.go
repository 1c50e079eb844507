package node

import (
	"slices"
	"strings"

	"podenv.dev/featuregates"
)

// PodPreset has three switches in the API server: the feature gate, the version of the API,
// and the admission plugin. Here all are on or all are off. The API server does not start
// with the plugin alone, and an API server without the feature knows none of them.
const (
	podPreset        = string(featuregates.PodPreset)
	podPresetVersion = "settings.k8s.io/v1alpha1"
	runtimeConfig    = "--runtime-config="
	admissionPlugins = "--enable-admission-plugins="
)

// setPodPreset returns the words of an API server's command with the two other switches on or
// off.
func setPodPreset(words []string, on bool) []string {
	words = setListItem(words, runtimeConfig, podPresetVersion+"=true", on)
	return setListItem(words, admissionPlugins, podPreset, on)
}

// setListItem adds an item to the comma-separated value of a flag, or removes it. It removes
// a flag whose list becomes empty.
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
