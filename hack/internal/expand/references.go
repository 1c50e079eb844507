package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"podenv.dev/pkg/kubelet/expansion"
)

// expand expands the value of the container's variable number declared, or, if
// that is behind the last, of its command or args. Each name is found once.
func (s *containerStart) expand(text string, declared int) Text {
	lookUp := expansion.MappingFuncFor(nil, s.variables, s.services.values)
	var findings []Finding
	expanded := expansion.Expand(text, func(name string) string {
		value, finding := s.lookUp(name, declared, lookUp)
		if finding != nil && !slices.Contains(findings, *finding) {
			findings = append(findings, *finding)
		}
		return value
	})
	return Text{Value: expanded, Findings: findings}
}

// lookUp returns what a reference to name becomes, and what there is to say of it.
func (s *containerStart) lookUp(name string, declared int, mapping func(string) string) (string, *Finding) {
	value := mapping(name)
	if _, ok := s.variables[name]; ok {
		if why, ok := s.unknown[name]; ok {
			return value, &Finding{Type: Unknown, Name: name, Text: fmt.Sprintf("$(%s) is not known: %s", name, why)}
		}
		return value, nil
	}
	if _, ok := s.services.values[name]; ok {
		return value, nil
	}
	if why, ok := s.unset[name]; ok {
		return value, &Finding{Type: Unset, Name: name, Text: fmt.Sprintf("$(%s) stays: %s", name, why)}
	}
	finding := s.missing(name, declared)
	if finding.Type == Unknown {
		value = placeholder(name)
	}
	return value, &finding
}

// missing says why name has no value: the first cause that holds.
func (s *containerStart) missing(name string, declared int) Finding {
	unexpanded := func(why, text string) Finding {
		return Finding{Type: Unexpanded, Name: name, Why: why, Text: fmt.Sprintf("$(%s) stays: %s", name, text)}
	}
	unknown := func(text string) Finding {
		return Finding{Type: Unknown, Name: name, Text: fmt.Sprintf("$(%s) is not known: %s", name, text)}
	}
	for i := declared; i < len(s.container.Env); i++ {
		switch {
		case s.container.Env[i].Name != name:
		case i == declared:
			return unexpanded(RefersToItself, "the variable refers to itself, and nothing before sets it")
		default:
			return unexpanded(DeclaredLater, fmt.Sprintf("%s is declared later; move it before %s", name, s.container.Env[declared].Name))
		}
	}
	for _, source := range s.open {
		if strings.HasPrefix(name, source.prefix) {
			return unknown(fmt.Sprintf("it may be in envFrom %s; %s", source.title, source.why))
		}
	}
	if s.services.mayHave(name) {
		return unknown("it may be a service's; " + s.services.unknown)
	}
	if meant := nearest(name, s.names()); meant != "" {
		finding := unexpanded(Misspelt, fmt.Sprintf("no such variable; did you mean %s?", meant))
		finding.Nearest = meant
		return finding
	}
	return unexpanded(NotDeclared, fmt.Sprintf("no such variable; declare it, or write $$(%s) to mean $(%[1]s) itself", name))
}

// names are those of all variables of the container, also those that come later.
func (s *containerStart) names() []string {
	var names []string
	for _, env := range s.container.Env {
		names = append(names, env.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(s.variables))...)
	return append(names, slices.Sorted(maps.Keys(s.services.values))...)
}
