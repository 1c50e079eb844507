package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
)

func TestParseGateChanges(t *testing.T) {
	got, err := ParseGateChanges([]string{"EnvFiles=true", "Other=false", "Third-"})
	want := map[string]*bool{"EnvFiles": ptr.To(true), "Other": ptr.To(false), "Third": nil}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	for _, wrong := range []string{"EnvFiles", "EnvFiles=", "EnvFiles=on", "EnvFiles=true-", "=true", "-", "Env Files=true", "EnvFiles=true,Other=true", "EnvFiles-,Other-"} {
		if got, err := ParseGateChanges([]string{wrong}); err == nil {
			t.Errorf("%q gave %v", wrong, got)
		}
	}
	if _, err := ParseGateChanges([]string{"EnvFiles=true", "EnvFiles-"}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("a gate given twice: %v", err)
	}
}

func TestWithLeavesOtherGatesAsTheyAre(t *testing.T) {
	before := map[string]bool{"A": true, "B": true, "C": false}
	got := applyGateChanges(before, map[string]*bool{"A": ptr.To(false), "B": nil, "D": ptr.To(true)})
	if diff := cmp.Diff(map[string]bool{"A": false, "C": false, "D": true}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(before) != 3 || !before["B"] {
		t.Errorf("what was given is changed: %v", before)
	}
	if got := applyGateChanges(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("no gates and no changes give %v, want an empty map", got)
	}
}

// fakeBuild is a build of a component that knows some gates.
type fakeBuild struct {
	knows  []string
	locked string
	broken error
}

func (b fakeBuild) start(_ context.Context, args ...string) error {
	gates := strings.TrimPrefix(args[0], "--feature-gates=")
	for pair := range strings.SplitSeq(gates, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if name == b.locked && value == "false" {
			return fmt.Errorf("cannot set feature gate %s to false, feature is locked to true", name)
		}
		if !slices.Contains(b.knows, name) {
			return fmt.Errorf("failed to set feature gates: unrecognized feature gate: %s", name)
		}
	}
	if b.broken != nil {
		return b.broken
	}
	if args[1] == "--config=/nonexistent" {
		return errors.New("failed to load kubelet config file")
	}
	return nil
}

func TestKnownGatesAsksTheBuild(t *testing.T) {
	gates := map[string]bool{"EnvFiles": true, "Relaxed": false, "Events": true}
	tests := map[string]struct {
		build     fakeBuild
		component string
		known     map[string]bool
		unknown   string
		says      string
	}{
		"a kubelet that knows all":            {fakeBuild{knows: []string{"EnvFiles", "Relaxed", "Events"}}, "kubelet", gates, "", ""},
		"a kubelet that knows one":            {fakeBuild{knows: []string{"Relaxed"}}, "kubelet", map[string]bool{"Relaxed": false}, "EnvFiles Events", ""},
		"an API server that knows none":       {fakeBuild{}, "kube-apiserver", map[string]bool{}, "EnvFiles Events Relaxed", ""},
		"a gate that is locked the other way": {fakeBuild{knows: []string{"EnvFiles", "Relaxed", "Events"}, locked: "Relaxed"}, "kubelet", nil, "", "Relaxed to false, feature is locked"},
		"an API server that does not start":   {fakeBuild{knows: []string{"EnvFiles", "Relaxed", "Events"}, broken: errors.New("exec format error")}, "kube-apiserver", nil, "", "exec format error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			known, unknown, err := knownGates(t.Context(), test.build.start, test.component, gates)
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Fatalf("error %v, want %q", err, test.says)
			}
			if err == nil && !maps.Equal(known, test.known) {
				t.Errorf("known %v, want %v", known, test.known)
			}
			if got := strings.Join(unknown, " "); got != test.unknown {
				t.Errorf("unknown %q, want %q", got, test.unknown)
			}
		})
	}
}

func TestGatesInHelp(t *testing.T) {
	const help = `--feature-gates mapStringBool   A set of key=value pairs. Options are:
                AllAlpha=true|false (ALPHA - default=false)
                kube:EnvFiles=true|false (ALPHA - default=false)
                RelaxedEnvironmentVariableValidation=true|false (BETA - default=true) (DEPRECATED)
                DRAFractionalCapacityRange=true|false (BETA - default=false), or DRAFractionalCapacityRange=true|false (BETA - default=true) if --min-compatibility-version>=1.37
      --fail-swap-on   true|false`
	want := map[string]HelpGate{
		"AllAlpha": {Stage: "ALPHA"}, "EnvFiles": {Stage: "ALPHA"}, "DRAFractionalCapacityRange": {Stage: "BETA"},
		"RelaxedEnvironmentVariableValidation": {Stage: "BETA", Default: true},
	}
	if diff := cmp.Diff(want, GatesInHelp(help)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGatesThatAreChangedHaveToBeKnown(t *testing.T) {
	changes := map[string]*bool{"EnvFiles": ptr.To(true), "Other": nil}
	if err := refuseUnknown("kubelet", "v1.32.13", changes, []string{"LeftAsItIs"}); err != nil {
		t.Errorf("one that stays as it is: %v", err)
	}
	err := refuseUnknown("kubelet", "v1.32.13", changes, []string{"EnvFiles"})
	if err == nil || !strings.Contains(err.Error(), "kubelet v1.32.13 does not know the gate EnvFiles") {
		t.Errorf("one that is changed: %v", err)
	}
}
