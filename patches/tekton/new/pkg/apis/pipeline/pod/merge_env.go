package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// mergeEnv returns the variables of the default pod template with those of a run in force, as
// OverrideEnv does. Stock Tekton has the run's variables before the default's. So the default's may
// refer to the run's as well, and what they refer to moves in front of them. In a circle the run's stand
// first. Merging the result with the same defaults again changes nothing.
func mergeEnv(defaults, run []corev1.EnvVar) []corev1.EnvVar {
	if hasDefaults(defaults, run) {
		return run
	}
	return newEnvMerge(defaults, run, true).run()
}

// hasDefaults reports whether env needs nothing of the defaults, as after an earlier merge: it defines
// each of their variables, and does so before it refers to it. Only those references may stand in front
// that a merge leaves there.
func hasDefaults(defaults, env []corev1.EnvVar) bool {
	inDefaults, inEnv := placesOf(defaults), placesOf(env)
	isKept := map[string]bool{} // the names whose definitions in env begin with all those of the defaults
	for name, of := range inDefaults {
		in := inEnv[name]
		if len(in) == 0 {
			return false
		}
		isKept[name] = len(in) >= len(of) && slices.EqualFunc(of, in[:len(of)], func(d, e int) bool {
			return equality.Semantic.DeepEqual(defaults[d], env[e])
		})
	}
	isDefault := func(name string) bool { return isKept[name] && len(inEnv[name]) == len(inDefaults[name]) }
	circle := circles(env, inEnv)
	mayStandInFront := func(i int, name string) bool {
		own := env[i].Name
		if own != name && circle[own] == circle[name] {
			return true
		}
		// A default that stands in front of what it refers to in the defaults too.
		n, _ := slices.BinarySearch(inEnv[own], i)
		if !isKept[own] || n >= len(inDefaults[own]) || inDefaults.before(inDefaults[own][n], name) >= 0 {
			return false
		}
		return !isDefault(own) || isDefault(name)
	}
	isDefined := map[string]bool{}
	for i, e := range env {
		for _, name := range references(e) {
			if len(inDefaults[name]) > 0 && !isDefined[name] && !mayStandInFront(i, name) {
				return false
			}
		}
		isDefined[e.Name] = true
	}
	return true
}

// circles gives each name the number of the circle of references in which it is.
func circles(env []corev1.EnvVar, in places) map[string]int {
	refersTo := func(last int) (to []int) {
		for _, i := range in[env[last].Name] {
			for _, name := range references(env[i]) {
				if n := in.last(name); n >= 0 {
					to = append(to, n)
				}
			}
		}
		return to
	}
	circle := map[string]int{}
	found := func(nodes []int) {
		for _, i := range nodes {
			circle[env[i].Name] = nodes[0]
		}
	}
	g := newGraph(len(env), refersTo, found)
	for name := range in {
		g.visit(in.last(name))
	}
	return circle
}
