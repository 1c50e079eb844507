package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

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

// metricFeature is a line of the metric that tells every gate's state, see
// k8s.io/component-base/metrics/prometheus/feature.
var metricFeature = regexp.MustCompile(`^kubernetes_feature_enabled\{(?:[^}]*,)?name="([^"]+)"[^}]*\} ([01])$`)

// parseGates reads the gates' states off a component's metrics.
func parseGates(metrics io.Reader) (map[string]bool, error) {
	gates := make(map[string]bool)
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if m := metricFeature.FindStringSubmatch(lines.Text()); m != nil {
			gates[m[1]] = m[2] == "1"
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	if len(gates) == 0 {
		return nil, fmt.Errorf("the metrics do not have kubernetes_feature_enabled")
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
