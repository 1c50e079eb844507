package featuregates

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	cliflag "k8s.io/component-base/cli/flag"
)

const (
	featureGatesFlag     = "--feature-gates="
	runtimeConfigFlag    = "--runtime-config="
	admissionPluginsFlag = "--enable-admission-plugins="
)

// Switches are what an API server needs beside a gate. It does not start with an admission plugin
// whose gate is off, and a release without the feature knows none of them.
type Switches struct {
	RuntimeConfig    []string // versions of API groups, such as "settings.k8s.io/v1alpha1"
	AdmissionPlugins []string
}

// switches are those of every gate that has some.
func switches() map[string]Switches {
	all := maps.Clone(switchesOfKubernetes)
	for name, f := range declared {
		if len(f.Switches.RuntimeConfig)+len(f.Switches.AdmissionPlugins) > 0 {
			all[string(name)] = f.Switches
		}
	}
	return all
}

// SwitchesOf returns what an API server needs beside the gates that are on, sorted.
func SwitchesOf(gates map[string]bool) Switches {
	var needed Switches
	for name, s := range switches() {
		if gates[name] {
			needed.RuntimeConfig = append(needed.RuntimeConfig, s.RuntimeConfig...)
			needed.AdmissionPlugins = append(needed.AdmissionPlugins, s.AdmissionPlugins...)
		}
	}
	slices.Sort(needed.RuntimeConfig)
	slices.Sort(needed.AdmissionPlugins)
	return needed
}

// Flag renders gates as the value of a --feature-gates flag, sorted.
func Flag(gates map[string]bool) string { return strings.Join(List(gates), ",") }

// List renders each gate as NAME=true or NAME=false, sorted.
func List(gates map[string]bool) []string {
	pairs := make([]string, 0, len(gates))
	for name, on := range gates {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, on))
	}
	slices.Sort(pairs)
	return pairs
}

// FromCommand returns the gates that the words of a component's command set.
func FromCommand(words []string) (map[string]bool, error) {
	set := map[string]bool{}
	value := cliflag.NewMapStringBool(&set)
	for _, word := range words {
		if list, ok := strings.CutPrefix(word, featureGatesFlag); ok {
			if err := value.Set(list); err != nil {
				return nil, fmt.Errorf("the flag %s: %w", word, err)
			}
		}
	}
	return set, nil
}

// SetInCommand returns the words of a component's command with exactly these gates, and in
// the API server also with the switches of those that are on and without those of all others.
func SetInCommand(component string, words []string, gates map[string]bool) []string {
	words = slices.DeleteFunc(slices.Clone(words), func(word string) bool { return strings.HasPrefix(word, featureGatesFlag) })
	if len(gates) > 0 {
		words = append(words, featureGatesFlag+Flag(gates))
	}
	if component != "kube-apiserver" {
		return words
	}
	all := switches()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, version := range all[name].RuntimeConfig {
			words = setListItem(words, runtimeConfigFlag, version+"=true", gates[name])
		}
		for _, plugin := range all[name].AdmissionPlugins {
			words = setListItem(words, admissionPluginsFlag, plugin, gates[name])
		}
	}
	return words
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

var refusal = regexp.MustCompile(`unrecognized feature gate: \w+|cannot set feature gate \w+ to \w+, feature is locked to \w+`)

// Refusal returns the part of err, a component's failure, that says which gate it refuses; ""
// if there is none.
func Refusal(err error) string {
	if err == nil {
		return ""
	}
	return refusal.FindString(err.Error())
}

// Compare returns an error that names the gates of a component that differ from want.
func Compare(component string, want, have map[string]bool) error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		on, known := have[name]
		switch {
		case !known:
			wrong = append(wrong, name+" is unknown")
		case on != want[name]:
			wrong = append(wrong, fmt.Sprintf("%s=%t", name, on))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s runs with %s, want %s", component, strings.Join(wrong, ", "), Flag(want))
}
