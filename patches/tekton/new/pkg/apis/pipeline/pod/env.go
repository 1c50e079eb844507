package pod

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// OverrideEnv returns the variables of a step with those of its pod template in force. See TEP-0101.
//
// An override takes the place of the definition that it overrides, so that the variables behind it
// see its value. What it refers to, and stands behind it, moves in front of it. What the step does
// not define stands behind all of the step, and so may refer to it.
//
// An override that refers to its own name, as in "$(PATH):/x", stands directly behind the definition
// that it extends. Overrides that refer to each other in a circle stand in their own order behind
// the definitions that they override.
//
// A reference that is expanded where the template simply follows the step, as in stock Tekton, is
// expanded in the result too. The time is that of sorting the variables and references.
func OverrideEnv(step, template []corev1.EnvVar) []corev1.EnvVar {
	return newEnvMerge(step, template, false).run()
}

// mergeEnv returns the variables of the default pod template with those of a run in force, as
// OverrideEnv does. Stock Tekton has the run's variables before the default's. So the default's may
// refer to the run's as well, and what they refer to moves in front of them. Merging the result with
// the same defaults again changes nothing.
func mergeEnv(defaults, run []corev1.EnvVar) []corev1.EnvVar {
	if hasDefaults(defaults, run) {
		return run
	}
	return newEnvMerge(defaults, run, true).run()
}

// hasDefaults reports whether env needs nothing of the defaults, as after an earlier merge: it defines
// each of their variables, and does so before it refers to it. Only two kinds of references may stand
// in front, because a merge leaves them there: those of a default, and those in a circle to a default.
func hasDefaults(defaults, env []corev1.EnvVar) bool {
	inDefaults, last := map[string][]corev1.EnvVar{}, map[string]corev1.EnvVar{}
	for _, e := range defaults {
		inDefaults[e.Name] = append(inDefaults[e.Name], e)
	}
	isDefault := func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(inDefaults[e.Name], func(d corev1.EnvVar) bool { return equality.Semantic.DeepEqual(d, e) })
	}
	for _, e := range env {
		last[e.Name] = e
	}
	for name := range inDefaults {
		if _, has := last[name]; !has {
			return false
		}
	}
	defined := map[string]bool{}
	for _, e := range env {
		for _, name := range references(e.Value) {
			if len(inDefaults[name]) > 0 && !defined[name] && !isDefault(e) && !isDefault(last[name]) {
				return false
			}
		}
		defined[e.Name] = true
	}
	return true
}

// envMerge merges overrides into base. It visits each definition after those that it needs in front
// of it, in Tarjan's order of strongly connected components.
type envMerge struct {
	env       []corev1.EnvVar // of the base, then the overrides
	base      int             // so many are of the base
	templates bool            // whether the base is a pod template
	at        map[string][]int

	visits, low []int // when a definition was visited, counted from 1, and Tarjan's low link
	visited     int
	open        []int // visited, and not yet in merged
	isOpen      []bool
	done        []bool
	merged      []corev1.EnvVar
}

func newEnvMerge(base, overrides []corev1.EnvVar, templates bool) *envMerge {
	env := append(slices.Clone(base), withoutDead(overrides, anyName)...)
	m := &envMerge{
		env: env, base: len(base), templates: templates, at: map[string][]int{},
		visits: make([]int, len(env)), low: make([]int, len(env)), isOpen: make([]bool, len(env)), done: make([]bool, len(env)),
	}
	for i, e := range env {
		m.at[e.Name] = append(m.at[e.Name], i)
	}
	return m
}

func (m *envMerge) run() []corev1.EnvVar {
	for i := range m.env {
		if m.isOverridden(i) {
			i = m.last(m.env[i].Name)
		}
		m.visit(i)
	}
	return withoutDead(m.merged, func(name string) bool { return m.last(name) >= m.base })
}

// last is the definition of name that is in force, or -1.
func (m *envMerge) last(name string) int {
	if at := m.at[name]; len(at) > 0 {
		return at[len(at)-1]
	}
	return -1
}

func (m *envMerge) inBase(name string) bool { return m.at[name][0] < m.base }

// isOverridden reports whether i is a definition of the base that an override replaces.
func (m *envMerge) isOverridden(i int) bool { return i < m.base && m.last(m.env[i].Name) >= m.base }

// before is the last definition of name that stands before i, or -1.
func (m *envMerge) before(i int, name string) int {
	if n, _ := slices.BinarySearch(m.at[name], i); n > 0 {
		return m.at[name][n-1]
	}
	return -1
}

// needs lists the definitions that have to stand in front of i, in their order.
func (m *envMerge) needs(i int) []int {
	var needs []int
	if previous := m.before(i, m.env[i].Name); previous >= m.base || i < m.base && previous >= 0 {
		needs = append(needs, previous)
	}
	for _, name := range references(m.env[i].Value) {
		if need := m.need(i, name); need >= 0 {
			needs = append(needs, need)
		}
	}
	place := func(i int) int {
		if m.inBase(m.env[i].Name) && i >= m.base {
			return m.at[m.env[i].Name][0]
		}
		return i
	}
	slices.SortFunc(needs, func(a, b int) int { return cmp.Or(place(a)-place(b), a-b) })
	return slices.Compact(needs)
}

// need is the definition of name that a reference of i needs in front of i, or -1.
func (m *envMerge) need(i int, name string) int {
	before := m.before(i, name)
	isOverride, inForce := i >= m.base, m.last(name)
	switch {
	case name == m.env[i].Name: // i extends it
		return before
	case before >= m.base: // an earlier override
		return before
	case isOverride && m.inBase(m.env[i].Name):
		return inForce
	case before >= 0 && m.isOverridden(before):
		return inForce
	case m.templates && !isOverride && !m.isOverridden(i) && inForce >= m.base:
		return inForce // a default that refers to a variable of the run
	default:
		return before
	}
}

func (m *envMerge) visit(i int) {
	if m.visits[i] != 0 {
		return
	}
	m.visited++
	m.visits[i], m.low[i] = m.visited, m.visited
	m.open, m.isOpen[i] = append(m.open, i), true
	for _, need := range m.needs(i) {
		m.visit(need)
		if m.isOpen[need] {
			m.low[i] = min(m.low[i], m.low[need])
		}
	}
	if m.low[i] != m.visits[i] {
		return
	}
	var component []int
	for m.isOpen[i] {
		last := m.open[len(m.open)-1]
		m.open, m.isOpen[last] = m.open[:len(m.open)-1], false
		component = append(component, last)
	}
	if len(component) == 1 {
		m.put(i)
	} else {
		m.putCircle(component)
	}
}

func (m *envMerge) put(i int) {
	if !m.done[i] {
		m.done[i] = true
		m.merged = append(m.merged, m.env[i])
	}
}

// putCircle puts definitions that need each other in the order of stock Tekton, behind those that
// the overrides among them replace.
func (m *envMerge) putCircle(circle []int) {
	for _, i := range circle {
		if name := m.env[i].Name; i >= m.base && m.before(i, name) < m.base { // the first override
			n, _ := slices.BinarySearch(m.at[name], m.base)
			circle = append(circle, m.at[name][:n]...)
		}
	}
	isLate := func(i int) bool { return m.templates && i < m.base && !m.isOverridden(i) }
	slices.SortFunc(circle, func(a, b int) int {
		switch {
		case isLate(a) == isLate(b):
			return a - b
		case isLate(a):
			return 1
		default:
			return -1
		}
	})
	for _, i := range circle {
		if m.isOverridden(i) {
			m.putReplaced(i)
		} else {
			m.put(i)
		}
	}
}

// putReplaced puts a definition of the base that is replaced later, and before it what it refers to.
func (m *envMerge) putReplaced(i int) {
	if m.done[i] || m.isOverridden(i) && m.done[m.last(m.env[i].Name)] {
		return
	}
	for _, name := range append(references(m.env[i].Value), m.env[i].Name) {
		if before := m.before(i, name); before >= 0 && (!m.templates || m.isOverridden(before)) {
			m.putReplaced(before)
		}
	}
	m.put(i)
}

// withoutDead leaves out definitions that are replaced before a reference can see them, of those
// names for which may is true.
func withoutDead(env []corev1.EnvVar, may func(name string) bool) []corev1.EnvVar {
	var live []corev1.EnvVar
	isReplaced := map[string]bool{}
	for _, e := range slices.Backward(env) {
		if isReplaced[e.Name] && may(e.Name) {
			continue
		}
		live = append(live, e)
		isReplaced[e.Name] = true
		for _, name := range references(e.Value) {
			isReplaced[name] = false
		}
	}
	slices.Reverse(live)
	return live
}

func anyName(string) bool { return true }

// references lists the names that value refers to, as the kubelet expands "$(NAME)". "$$(NAME)" is
// no reference.
func references(value string) []string {
	var names []string
	for {
		at := strings.IndexByte(value, '$')
		if at < 0 || at+1 == len(value) {
			return names
		}
		next := value[at+1]
		value = value[at+2:]
		if next != '(' {
			continue
		}
		name, rest, closed := strings.Cut(value, ")")
		if closed {
			names, value = append(names, name), rest
		}
	}
}
