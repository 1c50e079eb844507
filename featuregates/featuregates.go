// Package featuregates holds the feature gates that this branch is about: their
// stage and default in every Kubernetes minor that it serves. The patches, kind
// configurations, suites and documents agree with it, and tests compare them.
package featuregates

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

const (
	// EnvFiles lets a container take a variable from a file in an emptyDir volume
	// through env[].valueFrom.fileKeyRef (KEP-3721).
	EnvFiles featuregate.Feature = "EnvFiles"

	// RelaxedEnvironmentVariableValidation allows every printable ASCII character
	// but "=" in the name of a variable (KEP-4369).
	RelaxedEnvironmentVariableValidation featuregate.Feature = "RelaxedEnvironmentVariableValidation"

	// PodPreset serves the API group settings.k8s.io and lets the admission plugin of
	// the same name inject its PodPresets into pods (the document "Pod Preset"). The
	// API and the plugin have switches of their own beside it.
	PodPreset featuregate.Feature = "PodPreset"

	// VariableExpansionEvents makes the kubelet raise an event when a container
	// starts with $(NAME) references that could not be expanded (the document
	// "Variable expansion"). The expansion itself has no gate.
	VariableExpansionEvents featuregate.Feature = "VariableExpansionEvents"
)

// Gate is one gate of this branch.
type Gate struct {
	// KEP is the number of the enhancement that specifies the feature, or 0 where
	// a document older than KEPs does.
	KEP int
	// Components are the binaries that act on the gate.
	Components []string
	// Specs are the gate's stage and default, a row for each minor in which they
	// change, as component-base's versioned feature gates have them.
	Specs featuregate.VersionedSpecs
	// Upstream is the first minor in which Kubernetes itself has the gate. In
	// older ones it exists only with this branch's patches, and where Upstream is
	// nil in every one.
	Upstream *version.Version
}

// gates is the one place that says which gates there are.
var gates = map[featuregate.Feature]Gate{
	EnvFiles: {
		KEP:        3721,
		Components: []string{"kube-apiserver", "kubelet"},
		Specs: featuregate.VersionedSpecs{
			{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
			{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.Beta},
		},
		Upstream: version.MustParse("1.34"),
	},
	RelaxedEnvironmentVariableValidation: {
		KEP:        4369,
		Components: []string{"kube-apiserver", "kubelet"},
		Specs: featuregate.VersionedSpecs{
			{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
			{Version: version.MustParse("1.32"), Default: true, PreRelease: featuregate.Beta},
			{Version: version.MustParse("1.34"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
		},
		Upstream: version.MustParse("1.30"),
	},
	PodPreset: {
		Components: []string{"kube-apiserver"},
		Specs: featuregate.VersionedSpecs{
			{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
		},
	},
	VariableExpansionEvents: {
		Components: []string{"kubelet"},
		Specs: featuregate.VersionedSpecs{
			{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
		},
	},
}

// State is what one gate is in one minor.
type State struct {
	Name featuregate.Feature
	Gate
	// Spec is the stage and the default in force.
	Spec featuregate.FeatureSpec
	// Carried says that the gate comes from this branch's patches.
	Carried bool
}

// In lists the gates that a patched release of minor ("v1.33") has, sorted by
// name. It returns an error for a minor that is not a version.
func In(minor string) ([]State, error) {
	v, err := version.ParseGeneric(minor)
	if err != nil {
		return nil, fmt.Errorf("minor %q: %w", minor, err)
	}
	var states []State
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		gate := gates[name]
		spec, ok := inForce(gate.Specs, v)
		if !ok {
			continue
		}
		carried := gate.Upstream == nil || v.LessThan(gate.Upstream)
		states = append(states, State{Name: name, Gate: gate, Spec: spec, Carried: carried})
	}
	return states, nil
}

// inForce returns the newest row that is not newer than v.
func inForce(specs featuregate.VersionedSpecs, v *version.Version) (featuregate.FeatureSpec, bool) {
	for _, spec := range slices.Backward(specs) {
		if !v.LessThan(spec.Version) {
			return spec, true
		}
	}
	return featuregate.FeatureSpec{}, false
}

// Enabled returns a feature-gates map that turns on every gate that a patched
// release of minor has, in the form that component configurations take.
func Enabled(minor string) (map[string]bool, error) {
	states, err := In(minor)
	if err != nil {
		return nil, err
	}
	on := make(map[string]bool, len(states))
	for _, state := range states {
		on[string(state.Name)] = true
	}
	return on, nil
}

// Stock is Enabled for the release of minor without patches: it has the gates that are upstream's.
func Stock(minor string) (map[string]bool, error) {
	states, err := In(minor)
	if err != nil {
		return nil, err
	}
	on := map[string]bool{}
	for _, state := range states {
		if !state.Carried {
			on[string(state.Name)] = true
		}
	}
	return on, nil
}

// quotedEnvFiles is the first minor whose kubelets read env files of the form VAR='VALUE',
// as Kubernetes itself has it; older ones read VAR=VALUE.
var quotedEnvFiles = version.MustParse("1.35")

// QuotesEnvFiles reports whether kubelets of release ("v1.37" or "v1.37.1") read env files
// of the form VAR='VALUE'. It returns an error for a release that is not a version.
func QuotesEnvFiles(release string) (bool, error) {
	v, err := version.ParseGeneric(release)
	if err != nil {
		return false, fmt.Errorf("release %q: %w", release, err)
	}
	return v.AtLeast(quotedEnvFiles), nil
}

// CanBeOff reports whether a component of minor starts with the gate called name off. It does
// unless the gate is locked there.
func CanBeOff(minor, name string) (bool, error) {
	states, err := In(minor)
	if err != nil {
		return false, err
	}
	locked := slices.ContainsFunc(states, func(state State) bool {
		return string(state.Name) == name && state.Spec.LockToDefault
	})
	return !locked, nil
}
