package pod

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// OverrideEnv returns the variables of a step with those of its pod template in force. See TEP-0101.
//
// An override takes the place of the definition that it overrides, so that the variables behind it
// see its value. What it refers to, and stands behind it, moves in front of it. What the step does
// not define stands behind all of the step, and so may refer to it.
//
// An override that refers to its own name, as in "$(PATH):/x", stands directly behind the definition
// that it extends. So does one whose source may yield nothing, for example a key of a Secret that is
// optional, because then the definition that it overrides is in force. Overrides that refer to each
// other in a circle stand in their own order behind the definitions that they override.
//
// A reference that is expanded where the template simply follows the step, as in stock Tekton, is
// expanded in the result too. The time is that of sorting the variables and references.
func OverrideEnv(step, template []corev1.EnvVar) []corev1.EnvVar {
	return newEnvMerge(step, template, false).run()
}

// envMerge merges overrides into base. It puts each definition behind those that it needs in front of it.
type envMerge struct {
	env       []corev1.EnvVar // of the base, then the overrides
	base      int             // so many are of the base
	templates bool            // whether the base is a pod template
	places                    // of env

	needed *graph
	done   []bool
	merged []corev1.EnvVar
}

func newEnvMerge(base, overrides []corev1.EnvVar, templates bool) *envMerge {
	env := append(slices.Clone(base), withoutDead(overrides, anyName)...)
	m := &envMerge{env: env, base: len(base), templates: templates, places: placesOf(env), done: make([]bool, len(env))}
	m.needed = newGraph(len(env), m.needs, m.putAll)
	return m
}

func (m *envMerge) run() []corev1.EnvVar {
	for i := range m.env {
		if m.isOverridden(i) {
			i = m.last(m.env[i].Name)
		}
		m.needed.visit(i)
	}
	if m.templates {
		return m.merged // as it is: what is left out could not be found in a second merge
	}
	return withoutDead(m.merged, func(name string) bool { return m.last(name) >= m.base })
}

func (m *envMerge) inBase(name string) bool { return m.places[name][0] < m.base }

// isOverridden reports whether i is a definition of the base that an override replaces.
func (m *envMerge) isOverridden(i int) bool { return i < m.base && m.last(m.env[i].Name) >= m.base }

// needs lists the definitions that have to stand in front of i, in their order.
func (m *envMerge) needs(i int) []int {
	var needs []int
	if previous := m.before(i, m.env[i].Name); previous >= m.base || i < m.base && previous >= 0 {
		needs = append(needs, previous)
	}
	for _, name := range references(m.env[i]) {
		if need := m.need(i, name); need >= 0 {
			needs = append(needs, need)
		}
	}
	place := func(i int) int {
		if m.inBase(m.env[i].Name) && i >= m.base {
			return m.places[m.env[i].Name][0]
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

func (m *envMerge) put(i int) {
	if !m.done[i] {
		m.done[i] = true
		m.merged = append(m.merged, m.env[i])
	}
}

// putAll puts definitions that need each other in the order of stock Tekton. Those of a step stand
// behind those that the overrides among them replace.
func (m *envMerge) putAll(circle []int) {
	if len(circle) == 1 {
		m.put(circle[0])
		return
	}
	for _, i := range circle {
		if name := m.env[i].Name; !m.templates && i >= m.base && m.before(i, name) < m.base { // the first override
			n, _ := slices.BinarySearch(m.places[name], m.base)
			circle = append(circle, m.places[name][:n]...)
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
		if !m.templates && m.isOverridden(i) {
			m.putReplaced(i)
		} else {
			m.put(i)
		}
	}
}

// putReplaced puts a definition of the step that is replaced later, and before it what it refers to.
func (m *envMerge) putReplaced(i int) {
	if m.done[i] || m.isOverridden(i) && m.done[m.last(m.env[i].Name)] {
		return
	}
	for _, name := range append(references(m.env[i]), m.env[i].Name) {
		if before := m.before(i, name); before >= 0 {
			m.putReplaced(before)
		}
	}
	m.put(i)
}

// places are where the definitions of each name are.
type places map[string][]int

func placesOf(env []corev1.EnvVar) places {
	p := places{}
	for i, e := range env {
		p[e.Name] = append(p[e.Name], i)
	}
	return p
}

// last is the definition of name that is in force, or -1.
func (p places) last(name string) int {
	if at := p[name]; len(at) > 0 {
		return at[len(at)-1]
	}
	return -1
}

// before is the last definition of name that stands before i, or -1.
func (p places) before(i int, name string) int {
	if n, _ := slices.BinarySearch(p[name], i); n > 0 {
		return p[name][n-1]
	}
	return -1
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
		for _, name := range references(e) {
			isReplaced[name] = false
		}
	}
	slices.Reverse(live)
	return live
}

func anyName(string) bool { return true }

// references lists the names that a variable refers to, as the kubelet expands "$(NAME)". "$$(NAME)" is
// no reference. A variable whose source may yield nothing counts as one that refers to its own name.
func references(e corev1.EnvVar) []string {
	var names []string
	if mayYieldNothing(e.ValueFrom) {
		names = append(names, e.Name)
	}
	for value := e.Value; ; {
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

// mayYieldNothing reports whether the kubelet may leave a variable out, and start the container. For each
// fileKeyRef it does so where its feature gate EnvFiles is off.
func mayYieldNothing(source *corev1.EnvVarSource) bool {
	switch {
	case source == nil:
		return false
	case source.SecretKeyRef != nil:
		return ptr.Deref(source.SecretKeyRef.Optional, false)
	case source.ConfigMapKeyRef != nil:
		return ptr.Deref(source.ConfigMapKeyRef.Optional, false)
	default:
		return source.FileKeyRef != nil
	}
}
