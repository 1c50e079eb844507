package featuregates

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
)

// Probe is a pod that uses a feature, and the result that is expected of it with each pair of an
// API server and a kubelet.
type Probe struct {
	// Objects are files of test/manifests with what the pod needs.
	Objects []string
	// Pod is the file of test/manifests with the pod, whose only container prints its environment.
	Pod string
	// Env are the variables of that container that only an API server with the gate on accepts;
	// nil if every API server takes the pod.
	Env []string
	// Saw says what a sight of the pod shows of the feature.
	Saw func(s Sight) string
	// Want is what the pair c should make of the pod.
	Want func(c Cell) Outcome
}

// Sight is what can be seen of a probe's pod once its container has started.
type Sight struct {
	Env    map[string]string // what the container printed
	Events []string          // the reasons of the events on the pod
}

// Build is the origin of a component.
type Build string

const (
	// Stock is a release without this branch's patches.
	Stock Build = "stock"
	// Patched is a release with them.
	Patched Build = "patched"
)

// Runs is what a component runs: a build of a minor, and whether the gates are on.
type Runs struct {
	Build Build
	Minor string // v1.33
	On    bool   // the gates; a stock build, and a gate that is locked, has what its release has
}

// String is the heading in a matrix.
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

// GateState is what a component reports about one feature gate.
type GateState string

// The states of a gate.
const (
	GateOn      GateState = "on"
	GateOff     GateState = "off"
	GateUnknown GateState = "unknown" // the component has no such gate
)

// Gate is the state of a gate that the component should report.
func (r Runs) Gate(name featuregate.Feature) GateState {
	gate, known := StateIn(r.Minor, name)
	if !known || r.Build == Stock && gate.Carried {
		return GateUnknown
	}
	on := gate.Spec.Default
	if r.Build == Patched && !gate.Spec.LockToDefault {
		on = r.On
	}
	return map[bool]GateState{true: GateOn, false: GateOff}[on]
}

// Cell is a pair of an API server and a kubelet.
type Cell struct{ APIServer, Kubelet Runs }

// What can happen to a pod, beside what its container sees.
const (
	Refused = "refused" // the API server does not take it
	Waits   = "waits"   // the kubelet does not start it
)

// Outcome is what happens, in a cell, to a new pod, and to a pod that was stored while the gates
// were on and that a kubelet of the cell gets.
type Outcome struct{ Created, Stored string }

// String is the text in a matrix.
func (o Outcome) String() string { return o.Created + " / " + o.Stored }

// Probed lists the features of minor that have a probe.
func Probed(minor string) ([]State, error) {
	states, err := In(minor)
	return slices.DeleteFunc(states, func(s State) bool { return s.Probe == nil }), err
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
