package featuregates

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
)

// declared is the one place that says which features there are. What probes want depends on other
// declarations, so init sets it.
var declared map[featuregate.Feature]Feature

func init() {
	declared = map[featuregate.Feature]Feature{
		EnvFiles: {
			KEP:        3721,
			Components: []string{"kube-apiserver", "kubelet"},
			Specs: featuregate.VersionedSpecs{
				{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
				{Version: version.MustParse("1.35"), Default: true, PreRelease: featuregate.Beta},
			},
			Upstream: version.MustParse("1.34"),
			Suites:   []string{"envfiles", "expansion", "standalone", "tekton", "upgrade"},
			Probe:    &Probe{Pod: "probe-envfiles.yaml", Env: []string{"FROM_FILE"}, Saw: sawFile, Want: wantEnvFile},
			Stored:   &storedFile,
			Examples: userStories,
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
			Suites:   []string{"relaxed", "upgrade"},
			Probe:    &Probe{Objects: []string{"probe-relaxed-config.yaml"}, Pod: "probe-relaxed.yaml", Env: []string{specialName}, Saw: sawNames, Want: wantRelaxed},
			Stored:   &storedName,
		},
		PodPreset: {
			Components: []string{"kube-apiserver"},
			Specs: featuregate.VersionedSpecs{
				{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
			},
			Switches: Switches{RuntimeConfig: []string{"settings.k8s.io/v1alpha1"}, AdmissionPlugins: []string{"PodPreset"}},
			Suites:   []string{"podpreset", "upgrade"},
			Probe:    &Probe{Objects: []string{"probe-podpreset-preset.yaml"}, Pod: "probe-podpreset.yaml", Saw: sawPreset, Want: wantPreset},
			Examples: presetExample,
		},
		VariableExpansionEvents: {
			Components: []string{"kubelet"},
			Specs: featuregate.VersionedSpecs{
				{Version: version.MustParse("1.29"), Default: false, PreRelease: featuregate.Alpha},
			},
			Suites: []string{"expansion", "upgrade"},
			Probe:  &Probe{Pod: "probe-expansion.yaml", Saw: sawExpansion, Want: wantExpansion},
		},
	}
}

// switchesOfKubernetes are the switches beside gates of Kubernetes itself that a cluster of podenv
// may set: the API of the gate is off by default while it is beta.
var switchesOfKubernetes = map[string]Switches{
	validatingAdmissionPolicy: {RuntimeConfig: []string{"admissionregistration.k8s.io/v1beta1"}},
}

// validatingAdmissionPolicy is a gate of Kubernetes v1.29, beta and off by default, for the policy
// with which operators forbid special names of variables.
const validatingAdmissionPolicy = "ValidatingAdmissionPolicy"

// What the probes see.
const (
	// Of a variable from an env file.
	Value  = "value"   // it has the value that is in the file
	Empty  = "empty"   // it is there, without a value
	NotSet = "not set" // it is not there

	// Of a special name, and a special key of a ConfigMap taken by envFrom.
	Both     = "both"      // they are there
	NameOnly = "name only" // the key is left out

	// Of a reference that cannot be expanded.
	Event   = "event"
	NoEvent = "no event"

	specialName = "Logging:Level"
	specialKey  = "1st.key"
)

func sawFile(s Sight) string { return sawVariable(s, "FROM_FILE") }

func sawVariable(s Sight, name string) string {
	switch got, ok := s.Env[name]; {
	case !ok:
		return NotSet
	case got == "":
		return Empty
	default:
		return got
	}
}

// wantEnvFile is the effect of the skew on a variable from an env file.
//
// An API server that does not know the field drops it from every pod that it reads or writes:
// after it has bound a pod to a node, the field is gone. A new pod's variable then has an empty
// valueFrom, so it refuses the pod. An API server with the gate off refuses the pod too. For a
// kubelet that does not know the field, the variable has no value. The same goes for a kubelet
// whose release has the field from upstream, with the gate off.
func wantEnvFile(c Cell) Outcome {
	given := map[GateState]string{GateUnknown: Empty, GateOff: NotSet, GateOn: Value}[c.Kubelet.Gate(EnvFiles)]
	if state, known := StateIn(c.Kubelet.Minor, EnvFiles); given == NotSet && known && !state.Carried {
		given = Empty
	}
	switch c.APIServer.Gate(EnvFiles) {
	case GateOn:
		return Outcome{given, given}
	case GateOff:
		return Outcome{Refused, given}
	default:
		return Outcome{Refused, Empty}
	}
}

func sawNames(s Sight) string {
	switch {
	case s.Env[specialName] != Value:
		return "no name"
	case s.Env[specialKey] == Value:
		return Both
	}
	return NameOnly
}

// wantRelaxed is the effect of the skew on special names.
//
// The gate of an API server applies to new pods. A kubelet accepts every name that a pod has.
// For special keys of a ConfigMap, kubelets of v1.30 and later accept them whatever the gate.
// The stock one of v1.29 does not, and the patched one follows the gate.
func wantRelaxed(c Cell) Outcome {
	given := Both
	if c.Kubelet.Minor == "v1.29" && c.Kubelet.Gate(RelaxedEnvironmentVariableValidation) != GateOn {
		given = NameOnly
	}
	if c.APIServer.Gate(RelaxedEnvironmentVariableValidation) != GateOn {
		return Outcome{Refused, given}
	}
	return Outcome{given, given}
}

func sawPreset(s Sight) string { return sawVariable(s, "FROM_PRESET") }

// wantPreset is the effect of the skew on a pod that a PodPreset selects: the API server that
// creates it injects, or none does.
func wantPreset(c Cell) Outcome {
	if c.APIServer.Gate(PodPreset) != GateOn {
		return Outcome{NotSet, Value}
	}
	return Outcome{Value, Value}
}

func sawExpansion(s Sight) string {
	if slices.Contains(s.Events, "UnexpandedVariableReferences") {
		return Event
	}
	return NoEvent
}

// wantExpansion is the effect of the skew on a reference that cannot be expanded. No API server
// has a part in it.
func wantExpansion(c Cell) Outcome {
	if c.Kubelet.Gate(VariableExpansionEvents) != GateOn {
		return Outcome{NoEvent, NoEvent}
	}
	return Outcome{Event, Event}
}
