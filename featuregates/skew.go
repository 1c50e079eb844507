package featuregates

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-base/featuregate"
	sigsyaml "sigs.k8s.io/yaml"
)

//go:embed probes/*.yaml
var probes embed.FS

// Probe is a pod that uses a feature, and what becomes of it on every pair of an API server and a
// kubelet.
type Probe struct {
	// Manifest is a YAML file in probes/: ConfigMaps that the pod needs, and the pod, whose only
	// container prints its environment.
	Manifest string
	// Env are the variables of that container that only an API server with the gate on accepts.
	Env []string
	// Saw says what the container saw of the feature in the environment that it printed.
	Saw func(env map[string]string) string
	// Want is what the pair c should make of the pod.
	Want func(c Cell) Outcome
}

// Objects returns the objects of the probe's manifest. It returns an error for a manifest without
// a pod, or with what is neither a pod nor a ConfigMap.
func (p *Probe) Objects() (*v1.Pod, []*v1.ConfigMap, error) {
	data, err := probes.ReadFile(path.Join("probes", p.Manifest))
	if err != nil {
		return nil, nil, err
	}
	return decodeProbe(data)
}

func decodeProbe(data []byte) (pod *v1.Pod, maps []*v1.ConfigMap, err error) {
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	defer documents.Close()
	for {
		document := make([]byte, len(data))
		n, err := documents.Read(document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		var of struct{ Kind string }
		if err := sigsyaml.Unmarshal(document[:n], &of); err != nil {
			return nil, nil, err
		}
		var object any
		switch of.Kind {
		case "Pod":
			pod = &v1.Pod{}
			object = pod
		case "ConfigMap":
			maps = append(maps, &v1.ConfigMap{})
			object = maps[len(maps)-1]
		default:
			return nil, nil, fmt.Errorf("a probe has a Pod and ConfigMaps, not a %q", of.Kind)
		}
		if err := sigsyaml.UnmarshalStrict(document[:n], object); err != nil {
			return nil, nil, err
		}
	}
	if pod == nil || len(pod.Spec.Containers) != 1 {
		return nil, nil, errors.New("a probe has a pod of one container")
	}
	return pod, maps, nil
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
	var probed []State
	for _, s := range states {
		if s.Probe != nil {
			probed = append(probed, s)
		}
	}
	return probed, err
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
