package expected

import (
	"fmt"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
)

// The gates that a matrix is about.
const (
	EnvFiles = string(featuregates.EnvFiles)
	Relaxed  = string(featuregates.RelaxedEnvironmentVariableValidation)
)

// Runs is what a component runs: a build of a minor, and whether the gates are on.
type Runs struct {
	Build Build
	Minor string // v1.33
	On    bool   // the gates; a stock build, and a gate that is locked, has what its release has
}

// String is the heading in the matrix.
func (r Runs) String() string {
	switch {
	case r.Build == Stock:
		return "stock " + r.Minor
	case r.On:
		return "patched, on"
	default:
		return "patched, off"
	}
}

// Gate is the state of a gate that the component should report.
func (r Runs) Gate(name string) components.GateState {
	gate, known := components.StateIn(r.Minor, name)
	if !known || r.Build == Stock && gate.Carried {
		return components.GateUnknown
	}
	on := gate.Spec.Default
	if r.Build == Patched && !gate.Spec.LockToDefault {
		on = r.On
	}
	return map[bool]components.GateState{true: components.GateOn, false: components.GateOff}[on]
}

// What can happen to a pod.
const (
	Refused = "refused" // the API server does not take it
	Waits   = "waits"   // the kubelet does not start it

	// Of a variable from an env file.
	Value  = "value"   // it has the value that is in the file
	Empty  = "empty"   // it is there, without a value
	NotSet = "not set" // it is not there

	// Of a special name, and a special key of a ConfigMap taken by envFrom.
	Both     = "both"      // they are there
	NameOnly = "name only" // the key is left out
)

// Outcome is what happens, in a cell, to a new pod, and to a pod that was stored while the gates
// were on and that a kubelet of the cell gets.
type Outcome struct{ Created, Stored string }

// String is the text in the matrix.
func (o Outcome) String() string { return o.Created + " / " + o.Stored }

// Cell is a pair of an API server and a kubelet.
type Cell struct{ APIServer, Kubelet Runs }

// wantEnvFile is the effect of the skew on a variable from an env file.
//
// An API server that does not know the field drops it from every pod that it reads or writes:
// after it has bound a pod to a node, the field is gone. A new pod's variable then has an empty
// valueFrom, so it refuses the pod. An API server with the gate off refuses the pod too. For a
// kubelet that does not know the field, the variable has no value. The same goes for a kubelet
// whose release has the field from upstream, with the gate off.
func (c Cell) wantEnvFile() Outcome {
	given := map[components.GateState]string{components.GateUnknown: Empty, components.GateOff: NotSet, components.GateOn: Value}[c.Kubelet.Gate(EnvFiles)]
	if gate, known := components.StateIn(c.Kubelet.Minor, EnvFiles); given == NotSet && known && !gate.Carried {
		given = Empty
	}
	switch c.APIServer.Gate(EnvFiles) {
	case components.GateOn:
		return Outcome{given, given}
	case components.GateOff:
		return Outcome{Refused, given}
	default:
		return Outcome{Refused, Empty}
	}
}

// wantRelaxed is the effect of the skew on special names.
//
// The gate of an API server applies to new pods. A kubelet accepts every name that a pod has.
// For special keys of a ConfigMap, kubelets of v1.30 and later accept them whatever the gate.
// The stock one of v1.29 does not, and the patched one follows the gate.
func (c Cell) wantRelaxed() Outcome {
	given := Both
	if c.Kubelet.Minor == "v1.29" && c.Kubelet.Gate(Relaxed) != components.GateOn {
		given = NameOnly
	}
	if c.APIServer.Gate(Relaxed) != components.GateOn {
		return Outcome{Refused, given}
	}
	return Outcome{given, given}
}

// Features are the features of the matrix.
var Features = []struct {
	Gate string
	Want func(Cell) Outcome
}{
	{EnvFiles, Cell.wantEnvFile},
	{Relaxed, Cell.wantRelaxed},
}

// Sides returns the API servers and the kubelets of a matrix: those of minor, and stock
// kubelets of the older minors.
func Sides(minor string, older []string) (apiServers, kubelets []Runs) {
	own := []Runs{{Stock, minor, false}, {Patched, minor, false}, {Patched, minor, true}}
	for _, m := range older {
		kubelets = append(kubelets, Runs{Stock, m, false})
	}
	return own, append(kubelets, own...)
}

// Matrix returns a Markdown table with the result of get for each cell.
func Matrix(title string, apiServers, kubelets []Runs, get func(Cell) string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "| %s: API server, kubelet →", title)
	for _, k := range kubelets {
		fmt.Fprintf(&out, " | %s", k)
	}
	fmt.Fprintf(&out, " |\n|%s\n", strings.Repeat("---|", len(kubelets)+1))
	for _, a := range apiServers {
		fmt.Fprintf(&out, "| %s", a)
		for _, k := range kubelets {
			fmt.Fprintf(&out, " | %s", get(Cell{a, k}))
		}
		out.WriteString(" |\n")
	}
	return out.String()
}
