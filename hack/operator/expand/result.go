package expand

import "podenv.dev/hack/operator/preset"

// The values of a Finding's Type.
const (
	Unexpanded = "unexpanded" // the reference stays as it is written
	Unknown    = "unknown"    // depends on what is not known here
	Unset      = "unset"      // the variable is optional and not set
	Fails      = "fails"      // the container would not start
	Shadows    = "shadows"    // the variable hides a service's
)

// The values of a Finding's Why, for the Type Unexpanded.
const (
	DeclaredLater  = "declared_later"
	RefersToItself = "refers_to_itself"
	NotDeclared    = "not_declared"
	OptionalUnset  = "optional_unset" // declared, optional, and its source does not have it
	Misspelt       = "misspelt"       // not declared, and a declared name is close
)

// Pod is what a pod starts with, or each pod of a workload.
type Pod struct {
	Kind      string `json:"kind"` // of the object in the manifest
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Injected are the PodPresets that the pod gets, and Conflicts those that it does not,
	// if presets were asked for.
	Injected   []preset.Injected `json:"injected,omitempty"`
	Conflicts  []preset.Conflict `json:"conflicts,omitempty"`
	Containers []Container       `json:"containers"`
}

// Container is what one container starts with.
type Container struct {
	Name string `json:"name"`
	// Type is "container", "init container", "sidecar" or "ephemeral container".
	Type string `json:"type"`
	// Env is in the order in which the kubelet sets it: envFrom, env, services.
	Env []Variable `json:"env"`
	// Command and Args are empty where the image's own are used.
	Command []Text `json:"command,omitempty"`
	Args    []Text `json:"args,omitempty"`
	// Findings are about no variable in particular.
	Findings []Finding `json:"findings,omitempty"`
}

// ofManifest is the Source of a value that stands in the manifest itself.
const ofManifest = "value"

// Variable is one environment variable.
type Variable struct {
	Name string `json:"name"`
	// Source says where the value comes from, in a few words; "value" is the
	// manifest itself.
	Source string `json:"source"`
	Text
}

// Text is a value, or one element of command or args.
type Text struct {
	// Value has *** for a Secret's value unless those were asked for, and
	// <unknown NAME> for a variable whose value is not known here.
	Value    string    `json:"value"`
	Findings []Finding `json:"findings,omitempty"`
}

// Finding is what there is to say about a reference or a variable.
type Finding struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"` // the variable that it is about
	Why  string `json:"why,omitempty"`  // for programs
	Text string `json:"text"`           // for people
	// Nearest is the declared name that was probably meant, for Misspelt.
	Nearest string `json:"nearest,omitempty"`
}

// Count returns how many findings of the type are in pods.
func Count(pods []Pod, findingType string) int {
	n := 0
	count := func(findings []Finding) {
		for _, f := range findings {
			if f.Type == findingType {
				n++
			}
		}
	}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			count(c.Findings)
			for _, v := range c.Env {
				count(v.Findings)
			}
			for _, text := range append(append([]Text(nil), c.Command...), c.Args...) {
				count(text.Findings)
			}
		}
	}
	return n
}
