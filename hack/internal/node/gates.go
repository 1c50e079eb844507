package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/gates"
)

// ParseGateChanges reads changes of gates as a person writes them: EnvFiles=true,
// EnvFiles=false, and EnvFiles- to leave it to the build, as kubectl writes labels. The
// last is nil.
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
			return nil, fmt.Errorf("%q changes no gate: write NAME=true, NAME=false, or NAME- to set it no more", arg)
		}
		if !gateName.MatchString(name) {
			return nil, fmt.Errorf("%q is no name of a gate: write letters and digits, as in EnvFiles=true", name)
		}
		if _, twice := changes[name]; twice {
			return nil, fmt.Errorf("the gate %s is given twice: give it once", name)
		}
		changes[name] = change
	}
	return changes, nil
}

var gateName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*$`)

// with returns the gates of set after changes.
func with(set map[string]bool, changes map[string]*bool) map[string]bool {
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

// starter runs a build with arguments that make it end at once.
type starter func(ctx context.Context, args ...string) error

// knownGates returns those of set that a build of component knows, and the names of
// the others. It asks the build itself; one gate that it refuses to be set as asked for,
// since it is locked, is an error.
func knownGates(ctx context.Context, start starter, component string, set map[string]bool) (known map[string]bool, unknown []string, err error) {
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
		says := gates.Refusal(err)
		if says == "" {
			if component == "kubelet" {
				break // it misses its configuration, for which it looks after the gates
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

// gateArgs has a component look at gates and end. A kubelet that prints its version
// does not look at them.
func gateArgs(component string, set map[string]bool) []string {
	if component == "kubelet" {
		return []string{featureGates + gates.Flag(set), "--config=/nonexistent"}
	}
	return []string{featureGates + gates.Flag(set), "--version"}
}
