package expand

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper"

	"podenv.dev/pkg/kubelet/expansion"
)

// expandEnv expands the value of the container's variable number declared.
func (s *containerStart) expandEnv(declared int) Text {
	env := &s.container.Env[declared]
	return s.expand(declared, func(mapping func(string) string) (string, error) {
		return s.ofEnv.ExpandEnv(env.Name, env.Value, mapping), nil
	})
}

// expandAll expands the container's command or args, as where says.
func (s *containerStart) expandAll(where string, inputs []string) (texts []Text) {
	for i, input := range inputs {
		texts = append(texts, s.expand(len(s.container.Env), func(mapping func(string) string) (string, error) {
			return s.ofCommand.ExpandOne(where, i, input, mapping)
		}))
	}
	return texts
}

// expand expands text by what the container's variables are before the one of that number.
// Each name is found once.
func (s *containerStart) expand(declared int, text func(mapping func(string) string) (string, error)) Text {
	lookUp := expansion.MappingFuncFor(nil, s.variables, s.services.values)
	var findings []Finding
	expanded, err := text(func(name string) string {
		value, finding := s.lookUp(name, declared, lookUp)
		if finding != nil && !slices.Contains(findings, *finding) {
			findings = append(findings, *finding)
		}
		return value
	})
	if err != nil {
		return Text{Value: tooLong, Findings: append(findings, Finding{Type: Fails, Text: notStarted + err.Error()})}
	}
	return Text{Value: expanded, Findings: findings}
}

// tooLong stands for what a process cannot be given.
const tooLong = "<too long>"

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
	// No variable can be called so, and the kubelet does not report it.
	if len(validation.IsRelaxedEnvVarName(name)) > 0 {
		return value, nil
	}
	finding := s.missing(name, declared)
	if finding.Type == Unknown {
		value = placeholder(name)
	}
	return value, &finding
}

// missing says why name has no value. Where a source that is not known may set it,
// that comes first: whatever else there is to say holds only if that source does not.
func (s *containerStart) missing(name string, declared int) Finding {
	finding := s.unexpanded(name, declared)
	if why := s.maySet(name, declared); why != "" {
		text := fmt.Sprintf("$(%s) is not known: %s", name, why)
		if finding.Why != NotDeclared {
			text += "; otherwise " + finding.Text
		}
		return Finding{Type: Unknown, Name: name, Text: text}
	}
	return finding
}

// maySet returns which source may set name that is not known here, and why not, or nothing.
func (s *containerStart) maySet(name string, declared int) string {
	for _, source := range s.open {
		if strings.HasPrefix(name, source.prefix) {
			return fmt.Sprintf("it may be in envFrom %s; %s", source.title, source.why)
		}
	}
	if why := s.services.whyUnknown(name); why != "" {
		return "it may be a service's; " + why
	}
	// The kubelet expands command and args with the variables of device plugins, too.
	if declared == len(s.container.Env) {
		if device := extendedResource(s.container); device != "" {
			return fmt.Sprintf("the device plugin of %s may set it; %s", device, onStart)
		}
	}
	return ""
}

// extendedResource returns the first resource of the container that a device plugin may
// provide, or nothing.
func extendedResource(c *corev1.Container) string {
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
		if helper.IsExtendedResourceName(name) {
			return string(name)
		}
	}
	return ""
}

// unexpanded says why a reference to name stays as it is, if no source that is not
// known sets it.
func (s *containerStart) unexpanded(name string, declared int) Finding {
	finding := func(why, text string) Finding {
		return Finding{Type: Unexpanded, Name: name, Why: why, Text: fmt.Sprintf("$(%s) stays: %s", name, text)}
	}
	if why, ok := s.unset[name]; ok {
		return finding(OptionalUnset, why)
	}
	for i := declared; i < len(s.container.Env); i++ {
		switch {
		case s.container.Env[i].Name != name:
		case i == declared:
			return finding(RefersToItself, "the variable refers to itself, and nothing before sets it")
		default:
			return finding(DeclaredLater, fmt.Sprintf("%s is declared later; move it before %s", name, s.container.Env[declared].Name))
		}
	}
	if meant := nearest(name, s.names(declared)); meant != "" {
		misspelt := finding(Misspelt, fmt.Sprintf("no such variable; did you mean %s?", meant))
		misspelt.Nearest = meant
		return misspelt
	}
	return finding(NotDeclared, fmt.Sprintf("no such variable; declare it, or write $$(%s) to mean $(%[1]s) itself", name))
}

// names are those of all variables that the container's variable number declared may
// mean: also those that come later, but not its own.
func (s *containerStart) names(declared int) []string {
	var names []string
	for i, env := range s.container.Env {
		if i != declared {
			names = append(names, env.Name)
		}
	}
	names = append(names, slices.Sorted(maps.Keys(s.variables))...)
	return append(names, slices.Sorted(maps.Keys(s.services.values))...)
}
