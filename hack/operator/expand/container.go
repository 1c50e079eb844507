package expand

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podenv.dev/pkg/kubelet/expansion"
)

// containerStart makes the environment, command and args of one container, in the
// kubelet's order: envFrom, env, services, then command and args.
type containerStart struct {
	workload    *workload
	container   *corev1.Container
	objects     *objects
	services    *services
	showSecrets bool
	// relaxedNames is Options.RelaxedNames.
	relaxedNames *bool

	// variables are the container's so far: what a reference finds. unknown has
	// those of them whose value is not known, or not whole, and why; unset those
	// that are optional and not there.
	variables map[string]string
	unknown   map[string]string
	unset     map[string]string
	// open are the envFrom sources that are not known: they may set any name that
	// begins with the prefix.
	open []openSource
	// ofEnv and ofCommand are what the kubelet lets env, and command and args, expand to.
	ofEnv, ofCommand expansion.Budget

	result Container
}

type openSource struct{ prefix, title, why string }

func (s *containerStart) run(ctx context.Context) error {
	s.variables, s.unknown, s.unset = map[string]string{}, map[string]string{}, map[string]string{}
	for i := range s.container.EnvFrom {
		if err := s.envFrom(ctx, &s.container.EnvFrom[i]); err != nil {
			return err
		}
	}
	for i := range s.container.Env {
		if err := s.env(ctx, i); err != nil {
			return err
		}
	}
	s.checkEnv()
	for _, name := range slices.Sorted(maps.Keys(s.services.values)) {
		if _, ok := s.variables[name]; !ok {
			s.result.Env = append(s.result.Env, Variable{
				Name: name, Source: "service " + s.services.service[name], Text: Text{Value: s.services.values[name]},
			})
		}
	}
	s.result.Command = s.expandAll("command", s.container.Command)
	s.result.Args = s.expandAll("args", s.container.Args)
	return nil
}

// checkEnv shows the variables that a process cannot be given. The kubelet names the first.
func (s *containerStart) checkEnv() {
	sum := s.ofEnv.CheckSum()
	named := false
	for i := range s.result.Env {
		v := &s.result.Env[i]
		err := s.ofEnv.CheckEnv(map[string]string{v.Name: v.Value})
		if err == nil || err == sum {
			continue
		}
		v.Value = tooLong
		if !named {
			v.Findings = append(v.Findings, Finding{Type: Fails, Text: notStarted + err.Error()})
		}
		named = true
	}
	if sum != nil && !named {
		s.result.Findings = append(s.result.Findings, Finding{Type: Fails, Text: notStarted + sum.Error()})
	}
}

// set gives a variable its value, in place of the one that it may have had.
func (s *containerStart) set(v Variable) {
	if service, ok := s.services.service[v.Name]; ok {
		v.Findings = append(v.Findings, Finding{
			Type: Shadows, Name: v.Name, Text: fmt.Sprintf("hides the variable of service %s (%s)", service, s.services.values[v.Name]),
		})
	}
	s.variables[v.Name] = v.Value
	delete(s.unset, v.Name)
	delete(s.unknown, v.Name)
	for _, f := range v.Findings {
		switch {
		case f.Type == Unknown && f.Name == v.Name:
			s.unknown[v.Name] = f.Text
		case f.Type == Unknown:
			s.unknown[v.Name] = fmt.Sprintf("$(%s) is in it", f.Name)
		}
	}
	s.replace(v)
}

// replace puts v into the result. Of a declaration that it overrides stays what the
// kubelet would report all the same.
func (s *containerStart) replace(v Variable) {
	if i := slices.IndexFunc(s.result.Env, func(known Variable) bool { return known.Name == v.Name }); i >= 0 {
		for _, f := range s.result.Env[i].Findings {
			if f.Type == Unexpanded || f.Type == Fails {
				s.result.Findings = append(s.result.Findings, f)
			}
		}
		s.result.Env = slices.Delete(s.result.Env, i, i+1)
	}
	s.result.Env = append(s.result.Env, v)
}

const notStarted = "the container does not start: "

// placeholder stands for the value of a variable that is not known.
func placeholder(name string) string { return "<unknown " + name + ">" }

func (s *containerStart) env(ctx context.Context, i int) error {
	env := &s.container.Env[i]
	if env.Value != "" || env.ValueFrom == nil {
		s.set(Variable{Name: env.Name, Source: ofManifest, Text: s.expandEnv(i)})
		return nil
	}
	source, v, err := s.valueFrom(ctx, env.ValueFrom)
	if err != nil {
		return err
	}
	if v.unset == "" {
		s.ofEnv.Release(env.Name)
	}
	switch {
	case v.unset != "":
		if _, ok := s.variables[env.Name]; !ok {
			s.unset[env.Name] = v.unset
		}
		s.result.Findings = append(s.result.Findings, Finding{Type: Unset, Name: env.Name, Text: env.Name + " is not set: " + v.unset})
	case v.fails != "":
		s.set(Variable{Name: env.Name, Source: source, Text: Text{
			Value: placeholder(env.Name), Findings: []Finding{{Type: Fails, Name: env.Name, Text: notStarted + v.fails}},
		}})
	case v.unknown != "":
		s.set(Variable{Name: env.Name, Source: source, Text: Text{
			Value: placeholder(env.Name), Findings: []Finding{{Type: Unknown, Name: env.Name, Text: v.unknown}},
		}})
	default:
		s.set(Variable{Name: env.Name, Source: source, Text: Text{Value: v.text}})
	}
	return nil
}
