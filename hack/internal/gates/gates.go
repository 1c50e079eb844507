// Package gates reads and writes feature gates in the formats of Kubernetes' components:
// flags, metrics, and the error for a gate that a component refuses.
package gates

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/featuregates"
)

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

var refusal = regexp.MustCompile(`unrecognized feature gate: \w+|cannot set feature gate \w+ to \w+, feature is locked to \w+`)

// Refusal returns the part of err, a component's failure, that says which gate it refuses; ""
// if there is none.
func Refusal(err error) string {
	if err == nil {
		return ""
	}
	return refusal.FindString(err.Error())
}

// FromMetrics returns the gates in the metrics of a component, and whether they are on.
func FromMetrics(metrics []byte) (map[string]bool, error) {
	reported, err := featuregates.FromMetrics(bytes.NewReader(metrics))
	if err != nil {
		return nil, err
	}
	gates := make(map[string]bool, len(reported))
	for name, gate := range reported {
		gates[name] = gate.Enabled
	}
	return gates, nil
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
