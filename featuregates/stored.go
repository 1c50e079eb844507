package featuregates

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Stored is a variable of a container by which stored objects use a feature, for the tests of what
// API servers make of such objects.
type Stored struct {
	// Variable returns the variable. The container's pod has an emptyDir called volume, which only an init
	// container mounts.
	Variable func(volume string) v1.EnvVar
	// Uses reports whether a variable uses the feature.
	Uses func(v1.EnvVar) bool
	// Change changes what a template may have otherwise.
	Change func(*v1.EnvVar)
	// Rules are what an API server does, by what it says of the gate.
	Rules map[GateState]Rules
}

// Rules are what an API server does with objects that use a feature.
type Rules struct {
	Creates bool // takes new ones
	Shows   bool // shows what those have that were stored with the gate on
	Updates bool // takes updates of those
	Loses   bool // writes them without it, whoever writes what
}

// StoredIn lists the features of minor whose stored objects have rules.
func StoredIn(minor string) ([]State, error) {
	states, err := In(minor)
	return slices.DeleteFunc(states, func(s State) bool { return s.Stored == nil }), err
}

var storedFile = Stored{
	Variable: func(volume string) v1.EnvVar {
		return v1.EnvVar{Name: "A", ValueFrom: &v1.EnvVarSource{FileKeyRef: &v1.FileKeySelector{
			VolumeName: volume, Path: "config.env", Key: "KEY", Optional: ptr.To(false)}}}
	},
	Uses: func(env v1.EnvVar) bool { return env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil },
	Change: func(env *v1.EnvVar) {
		ref := env.ValueFrom.FileKeyRef
		ref.Optional = ptr.To(!ptr.Deref(ref.Optional, false))
	},
	Rules: map[GateState]Rules{
		GateOn:      {Creates: true, Shows: true, Updates: true},
		GateOff:     {Shows: true, Updates: true}, // the new object's variable has no other source
		GateUnknown: {Loses: true},
	},
}

var storedName = Stored{
	Variable: func(string) v1.EnvVar { return v1.EnvVar{Name: specialName, Value: "1"} },
	Uses:     func(env v1.EnvVar) bool { return env.Name == specialName },
	Change:   func(env *v1.EnvVar) { env.Value += "1" },
	Rules: map[GateState]Rules{
		GateOn:  {Creates: true, Shows: true, Updates: true},
		GateOff: {Shows: true, Updates: true},
		// A release without the gate validates what it updates as what is new.
		GateUnknown: {Shows: true},
	},
}
