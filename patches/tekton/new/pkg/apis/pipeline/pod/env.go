package pod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// OverrideEnv returns the variables of base with those of overrides in force. See TEP-0101.
//
// An override stands in the place of the definition that it overrides, so that the variables
// behind it see its value. One whose value refers to its own name, as in "$(PATH):/x", extends the
// definition: both are returned, one behind the other. A variable of overrides that base does not
// have stands behind all of base, and so may refer to them.
//
// Overrides that were merged with base already are returned as they are.
func OverrideEnv(base, overrides []corev1.EnvVar) []corev1.EnvVar {
	if len(overrides) == 0 {
		return base
	}
	defined, inForce := byName(base), byName(overrides)
	merged := make([]corev1.EnvVar, 0, len(base)+len(overrides))
	placed := map[string]bool{}
	place := func(name string) {
		if !placed[name] {
			merged, placed[name] = append(merged, inForce[name]...), true
		}
	}
	for _, e := range base {
		switch definitions := inForce[e.Name]; {
		case len(definitions) == 0:
			merged = append(merged, e)
		case !placed[e.Name] && extends(definitions[0]) && !startsWith(definitions, defined[e.Name]):
			merged = append(merged, defined[e.Name]...)
			place(e.Name)
		default:
			place(e.Name)
		}
	}
	for _, e := range overrides {
		place(e.Name)
	}
	return merged
}

// byName returns the definitions of each variable that count: the last one, or the last that does
// not extend another and those behind it that do.
func byName(env []corev1.EnvVar) map[string][]corev1.EnvVar {
	definitions := map[string][]corev1.EnvVar{}
	for _, e := range env {
		if extends(e) {
			definitions[e.Name] = append(definitions[e.Name], e)
		} else {
			definitions[e.Name] = []corev1.EnvVar{e}
		}
	}
	return definitions
}

// extends reports whether the value of e refers to e itself, as the kubelet expands references:
// "$$(NAME)" is none.
func extends(e corev1.EnvVar) bool {
	for rest := e.Value; ; {
		at := strings.IndexByte(rest, '$')
		switch {
		case at < 0:
			return false
		case strings.HasPrefix(rest[at:], "$$"):
			rest = rest[at+2:]
		case strings.HasPrefix(rest[at:], "$("+e.Name+")"):
			return true
		default:
			rest = rest[at+1:]
		}
	}
}

func startsWith(env, start []corev1.EnvVar) bool {
	return len(env) >= len(start) && slices.EqualFunc(env[:len(start)], start, func(a, b corev1.EnvVar) bool {
		return equality.Semantic.DeepEqual(a, b)
	})
}
