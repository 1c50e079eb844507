package inject

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// checkSources finds variables that both an env and an envFrom would set, or two envFroms, of
// which the container has one and the preset adds the other. What the preset adds itself is
// not in conflict with an env of its own, also where the container has that already: env wins.
func (a *attempt) checkSources(c *v1.Container, add addition, r *reasonList) {
	if a.options.Keys == nil {
		return
	}
	check := func(index *sourceIndex, name string) (more bool) {
		return a.more(index.each(name, func(source *v1.EnvFromSource) {
			r.add(fmt.Sprintf("Duplicate env %s, which envFrom %s sets too", show(name), sourceOf(source)))
		}))
	}
	had := a.options.index(c.EnvFrom)
	for i := range add.env {
		if !check(had, add.env[i].Name) {
			return
		}
	}
	if len(add.envFrom) == 0 {
		return
	}
	adds := a.options.index(add.envFrom)
	// An env decides alone.
	own, decided := map[string]bool{}, map[string]bool{}
	for i := range a.preset.Env {
		own[a.preset.Env[i].Name] = true
	}
	for i := range c.Env {
		name := c.Env[i].Name
		if !own[name] && !check(adds, name) {
			return
		}
		decided[name] = true
	}
	if len(c.EnvFrom) == 0 {
		return
	}
	for i := range add.envFrom {
		source := &add.envFrom[i]
		for _, key := range a.options.keysOf(source).sorted {
			if !a.more(1) {
				return
			}
			if name := source.Prefix + key; !decided[name] {
				check(had, name)
			}
		}
	}
}

// sourceIndex finds the sources that set a variable, by their prefixes. Presets and ConfigMaps
// may be large: a look at each key of each source would take minutes.
type sourceIndex struct {
	options  *Options
	byPrefix map[string][]*v1.EnvFromSource
	lengths  []int           // of the prefixes
	read     map[string]bool // prefixes of which only sources with keys are left
}

func (o *Options) index(sources []v1.EnvFromSource) *sourceIndex {
	x := &sourceIndex{options: o, byPrefix: map[string][]*v1.EnvFromSource{}, read: map[string]bool{}}
	lengths := map[int]bool{}
	for i := range sources {
		prefix := sources[i].Prefix
		x.byPrefix[prefix] = append(x.byPrefix[prefix], &sources[i])
		if !lengths[len(prefix)] {
			lengths[len(prefix)] = true
			x.lengths = append(x.lengths, len(prefix))
		}
	}
	slices.Sort(x.lengths)
	return x
}

// each calls f for each source that sets name. It returns how many look-ups that took.
func (x *sourceIndex) each(name string, f func(*v1.EnvFromSource)) (lookUps int) {
	for _, length := range x.lengths {
		if length > len(name) {
			break
		}
		lookUps++
		prefix, key := name[:length], name[length:]
		sources := x.byPrefix[prefix]
		if len(sources) > 0 && !x.read[prefix] {
			sources = slices.DeleteFunc(sources, func(s *v1.EnvFromSource) bool { return len(x.options.keysOf(s).sorted) == 0 })
			x.byPrefix[prefix], x.read[prefix] = sources, true
		}
		lookUps += len(sources)
		for _, source := range sources {
			if x.options.keysOf(source).has[key] {
				f(source)
			}
		}
	}
	return lookUps
}

// keySet are the keys of a ConfigMap or Secret.
type keySet struct {
	sorted []string
	has    map[string]bool
}

// keysOf are the keys that the ConfigMap or Secret of a source is known to have.
func (o *Options) keysOf(s *v1.EnvFromSource) *keySet {
	of := sourceOf(s)
	of.prefix = ""
	keys, ok := o.known[of]
	if !ok {
		keys = &keySet{sorted: slices.Clone(o.Keys(s)), has: map[string]bool{}}
		slices.Sort(keys.sorted)
		for _, key := range keys.sorted {
			keys.has[key] = true
		}
		if o.known == nil {
			o.known = map[source]*keySet{}
		}
		o.known[of] = keys
	}
	return keys
}
