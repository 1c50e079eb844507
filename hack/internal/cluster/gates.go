package cluster

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/progress"
)

// checkGates asks the node image's kubelet whether it takes the gates: components
// that do not would crash until kubeadm gives up, minutes later. Only what the
// kubelet says about a gate counts; that it does not start is as it should be.
func (d docker) checkGates(ctx context.Context, cfg *Config, step *progress.Step) error {
	if len(cfg.Gates) == 0 {
		return nil
	}
	step.Now("checking that the release knows the gates")
	err := d(ctx, "run", "--rm", "--network=none", "--entrypoint=kubelet", cfg.NodeImage,
		"--feature-gates="+gateFlag(cfg.Gates), "--config=/nonexistent").Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if refused := gateRefusal(err); refused != "" {
		return fmt.Errorf("the kubelet of node image %s refuses the gates %s: %s: leave out what the release does not have", cfg.NodeImage, gateFlag(cfg.Gates), refused)
	}
	return nil
}

var refusal = regexp.MustCompile(`unrecognized feature gate: \w+|cannot set feature gate \w+ to \w+, feature is locked to \w+`)

func gateRefusal(err error) string {
	if err == nil {
		return ""
	}
	return refusal.FindString(err.Error())
}

// parseGates reads which gates are on from a component's metrics.
func parseGates(metrics io.Reader) (map[string]bool, error) {
	reported, err := featuregates.FromMetrics(metrics)
	if err != nil {
		return nil, err
	}
	gates := make(map[string]bool, len(reported))
	for name, gate := range reported {
		gates[name] = gate.Enabled
	}
	return gates, nil
}

// compareGates says which of the gates wanted a component has otherwise.
func compareGates(component string, want, have map[string]bool) error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		on, known := have[name]
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("%s is unknown", name))
		case on != want[name]:
			wrong = append(wrong, fmt.Sprintf("%s=%t", name, on))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%s runs with %s, want %s", component, strings.Join(wrong, ", "), gateFlag(want))
}
