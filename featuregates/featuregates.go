// Package featuregates declares the features of this branch: the gate, with its stage and default
// in every Kubernetes minor that the branch serves, the other switches that it needs, the
// suites that test it, and how pods use it (Probe). The patches, clusters, node operations, suites
// and documents follow the declarations, and nothing else of the harness names a feature.
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

// Feature is the declaration of a feature of this branch.
type Feature struct {
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
	// Switches are what the API server needs beside the gate.
	Switches Switches
	// Suites are the folders of test/e2e whose specs need the gate, the feature's own first.
	Suites []string
	// Probe is a pod that uses the feature, for the tests of version skew and of two API
	// servers; nil if these have nothing to see.
	Probe *Probe
	// Stored is what stored objects have of the feature; nil if no API server does anything with it.
	Stored *Stored
	// Examples are the pods that show the feature on a new cluster of a release; nil if there are none.
	Examples func(release string) []Example
}

// State is what one gate is in one minor.
type State struct {
	Name featuregate.Feature
	Feature
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
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		f := declared[name]
		if spec, ok := inForce(f.Specs, v); ok {
			carried := f.Upstream == nil || v.LessThan(f.Upstream)
			states = append(states, State{Name: name, Feature: f, Spec: spec, Carried: carried})
		}
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

// EnabledInClusters is Enabled with the gates of Kubernetes itself that clusters of podenv have on: in v1.29
// ValidatingAdmissionPolicy, which is on by default in later releases.
func EnabledInClusters(minor string) (map[string]bool, error) {
	on, err := Enabled(minor)
	if err == nil && minor == "v1.29" {
		on[validatingAdmissionPolicy] = true
	}
	return on, err
}

// EnabledInStock is Enabled for the release of minor without patches: it has the gates that are
// upstream's.
func EnabledInStock(minor string) (map[string]bool, error) {
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

// StateIn returns the state of a gate of this branch in a patched release ("v1.33" or
// "v1.33.13"), and whether the release has the gate.
func StateIn(release string, name featuregate.Feature) (State, bool) {
	states, _ := In(release) // none in what is not a version
	for _, state := range states {
		if state.Name == name {
			return state, true
		}
	}
	return State{}, false
}

// OfSuite returns the gates that a suite tests, sorted. On podenv's own clusters they are required:
// a cluster that lost one must not pass because specs are skipped.
func OfSuite(suite string) []string {
	var gates []string
	for name, f := range declared {
		if slices.Contains(f.Suites, suite) {
			gates = append(gates, string(name))
		}
	}
	slices.Sort(gates)
	return gates
}

// Off returns the gates of a patched release of minor, off as far as they are not locked, and the
// suites of those that are. It returns an error for a minor that is not a version.
func Off(minor string) (gates map[string]bool, suites []string, err error) {
	states, err := In(minor)
	gates = map[string]bool{}
	for _, s := range states {
		gates[string(s.Name)] = s.Spec.LockToDefault
		if !s.Spec.LockToDefault && len(s.Suites) > 0 {
			suites = append(suites, s.Suites[0])
		}
	}
	return gates, suites, err
}

// Add declares one more feature, until remove is called: it is for tests.
func Add(name featuregate.Feature, f Feature) (remove func()) {
	declared[name] = f
	return func() { delete(declared, name) }
}
