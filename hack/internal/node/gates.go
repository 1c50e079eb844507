package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/featuregates"
)

// ParseGateChanges parses changes of gates: NAME=true, NAME=false, and, as in kubectl label,
// NAME- for the build's default, which is nil in the result.
func ParseGateChanges(args []string) (map[string]*bool, error) {
	changes := make(map[string]*bool)
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		var change *bool
		switch {
		case given && (value == "true" || value == "false"):
			change = new(value == "true")
		case !given && strings.HasSuffix(name, "-"):
			name = strings.TrimSuffix(name, "-")
		default:
			return nil, fmt.Errorf("%q changes no gate: write NAME=true, NAME=false, or NAME- to unset it", arg)
		}
		if !gateName.MatchString(name) {
			return nil, fmt.Errorf("%q is not the name of a gate: write letters and digits, as in NAME=true", name)
		}
		if _, twice := changes[name]; twice {
			return nil, fmt.Errorf("the gate %s is given twice: give it once", name)
		}
		changes[name] = change
	}
	return changes, nil
}

var gateName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

func applyGateChanges(set map[string]bool, changes map[string]*bool) map[string]bool {
	out := make(map[string]bool)
	maps.Copy(out, set)
	for name, change := range changes {
		if change == nil {
			delete(out, name)
		} else {
			out[name] = *change
		}
	}
	return out
}

// KnownGates starts the build to find which gates of set it knows, and returns these. A gate that is
// locked to another value is an error.
func (b Build) KnownGates(ctx context.Context, set map[string]bool) (map[string]bool, error) {
	known, _, err := knownGates(ctx, b.start, b.Component, set)
	return known, err
}

// knownGates returns the gates of set that a build of component knows, and the names of the others.
// A gate that is locked to another value is an error. start runs the build until it exits.
func knownGates(ctx context.Context, start func(ctx context.Context, args ...string) error, component string, set map[string]bool) (known map[string]bool, unknown []string, err error) {
	known = make(map[string]bool)
	maps.Copy(known, set)
	for len(known) > 0 {
		err := start(ctx, gateArgs(component, known)...)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err == nil {
			break
		}
		says := featuregates.Refusal(err)
		if says == "" {
			if component == "kubelet" {
				break // its configuration is missing: it reads that after the gates
			}
			return nil, nil, err
		}
		name, isUnknown := strings.CutPrefix(says, "unrecognized feature gate: ")
		if _, asked := known[name]; !isUnknown || !asked {
			return nil, nil, errors.New(says)
		}
		delete(known, name)
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return known, unknown, nil
}

// gateArgs returns arguments with which a component checks gates and exits. A kubelet with
// --version does not check them.
func gateArgs(component string, set map[string]bool) []string {
	exit := "--version"
	if component == "kubelet" {
		exit = "--config=/nonexistent"
	}
	return []string{"--feature-gates=" + featuregates.Flag(set), exit}
}

// HelpGate is what a component's --help says of a gate.
type HelpGate struct {
	Stage   string // ALPHA, BETA or DEPRECATED
	Default bool
}

// helpGate matches a gate in a component's --help: "NAME=true|false (ALPHA -
// default=false)". A gate may have a second entry, with its default under another
// --min-compatibility-version.
var helpGate = regexp.MustCompile(`\b(\w+)=true\|false \((\w+) - default=(true|false)\)( if --)?`)

// GatesInHelp returns the gates in a component's --help, which does not list those that are GA.
func GatesInHelp(help string) map[string]HelpGate {
	gates := map[string]HelpGate{}
	for _, m := range helpGate.FindAllStringSubmatch(help, -1) {
		if m[4] == "" {
			gates[m[1]] = HelpGate{Stage: m[2], Default: m[3] == "true"}
		}
	}
	return gates
}
