package inject

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzInto compares an injection with a model that is written from the document alone: each
// preset in turn is compared item by item with the pod as it is by then, and is copied into
// a new pod if no item differs. A second injection has to change nothing, and presets that
// have nothing in common give the same in each order.
func FuzzInto(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("one of each kind of container, and presets that redefine what others have"))
	f.Add([]byte{2, 1, 0, 1, 1, 2, 0, 1, 1, 1, 0, 2, 1, 2, 1, 1, 2, 2, 0, 1, 0, 2, 1, 1})
	f.Add([]byte("\x01\x02\x03\x01\x02\x03\x00\x01\x01\x01\x02\x02\x03\x03\x01\x00\x02\x01\x03\x02\x01"))
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 500; i++ {
		shape := make([]byte, 128)
		random.Read(shape)
		f.Add(shape)
	}

	f.Fuzz(func(t *testing.T, shape []byte) {
		g := &generator{bytes: shape}
		pod := g.pod()
		var presets []*Preset
		for i, n := 0, g.upTo(4); i < n; i++ {
			presets = append(presets, g.preset(i))
		}
		want, reversed := pod.DeepCopy(), pod.DeepCopy()
		applied := model(want, presets)

		options := Options{Keys: keysOf}
		result := into(pod, presets, options)
		var got []string
		for _, p := range result.Applied {
			got = append(got, p.Name)
		}
		if !reflect.DeepEqual(got, applied) {
			t.Fatalf("applied %q, want %q\n%v", got, applied, pod)
		}
		if !reflect.DeepEqual(pod, want) {
			t.Fatalf("the pod is\n%v\nwant\n%v", pod, want)
		}
		options.Before = result.Record
		if again := into(pod, presets, options); len(again.Conflicts) > 0 || !reflect.DeepEqual(again.Record, result.Record) {
			t.Fatalf("a second injection decides otherwise: %v, %v after %v", again.Conflicts, again.Record, result.Record)
		}
		if !reflect.DeepEqual(pod, want) {
			t.Fatalf("after a second injection the pod is\n%v\nwant\n%v", pod, want)
		}
		if g.common > 1 {
			return
		}
		slices.Reverse(presets)
		into(reversed, presets, Options{Keys: keysOf})
		sortLists(reversed)
		sortLists(want)
		if !reflect.DeepEqual(reversed, want) {
			t.Fatalf("presets without a common name, in reverse order, make the pod\n%v\nwant\n%v", reversed, want)
		}
	})
}

// sortLists sorts what presets append to.
func sortLists(pod *v1.Pod) {
	slices.SortFunc(pod.Spec.Volumes, func(a, b v1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for _, c := range containersOf(pod) {
		slices.SortFunc(c.Env, func(a, b v1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.EnvFrom, func(a, b v1.EnvFromSource) int {
			return strings.Compare(fmt.Sprint(sourceOf(&a)), fmt.Sprint(sourceOf(&b)))
		})
		slices.SortFunc(c.VolumeMounts, func(a, b v1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	}
}

func containersOf(pod *v1.Pod) []*v1.Container {
	var containers []*v1.Container
	for i := range pod.Spec.InitContainers {
		containers = append(containers, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		containers = append(containers, &pod.Spec.Containers[i])
	}
	return containers
}

// keysOf are the keys of a ConfigMap: its own name is the only one, and "absent" does not
// exist.
func keysOf(source *v1.EnvFromSource) []string {
	if source.ConfigMapRef.Name == "absent" {
		return nil
	}
	return []string{source.ConfigMapRef.Name}
}

// model injects presets and returns the names of those that it applied.
func model(pod *v1.Pod, presets []*Preset) []string {
	var applied []string
	for _, p := range presets {
		changed := pod.DeepCopy()
		if !modelOf(changed, p) {
			continue
		}
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations["podpreset.admission.kubernetes.io/podpreset-"+p.Name] = p.ResourceVersion
		*pod = *changed
		applied = append(applied, p.Name)
	}
	return applied
}

// modelOf returns false where an item of p is in pod already, and is another.
func modelOf(pod *v1.Pod, p *Preset) bool {
	for _, c := range containersOf(pod) {
		if envMeetsEnvFrom(c, p) {
			return false
		}
		for _, want := range p.EnvFrom {
			found := false
			for _, have := range c.EnvFrom {
				if have.Prefix != want.Prefix || have.ConfigMapRef.Name != want.ConfigMapRef.Name {
					continue
				}
				if isTrue(have.ConfigMapRef.Optional) != isTrue(want.ConfigMapRef.Optional) {
					return false
				}
				found = true
			}
			if !found {
				c.EnvFrom = append(c.EnvFrom, want)
			}
		}
		for _, want := range p.Env {
			found := false
			for _, have := range c.Env {
				if have.Name == want.Name && textOf(have) != textOf(want) {
					return false
				}
				found = found || have.Name == want.Name
			}
			if !found {
				c.Env = append(c.Env, want)
			}
		}
		for _, want := range p.VolumeMounts {
			found := false
			for _, have := range c.VolumeMounts {
				if have.MountPath == want.MountPath && have.Name != want.Name {
					return false
				}
				found = found || have.MountPath == want.MountPath
			}
			if !found {
				c.VolumeMounts = append(c.VolumeMounts, want)
			}
		}
	}
	for _, want := range p.Volumes {
		found := false
		for _, have := range pod.Spec.Volumes {
			if have.Name == want.Name && !reflect.DeepEqual(have, want) {
				return false
			}
			found = found || have.Name == want.Name
		}
		if !found {
			pod.Spec.Volumes = append(pod.Spec.Volumes, *want.DeepCopy())
		}
	}
	return true
}

func isTrue(b *bool) bool { return b != nil && *b }

// textOf has all that two variables of a name can differ in.
func textOf(e v1.EnvVar) string {
	if e.ValueFrom == nil {
		return e.Value
	}
	return fmt.Sprint("a key, optional: ", isTrue(e.ValueFrom.ConfigMapKeyRef.Optional))
}

// envMeetsEnvFrom tells whether p brings by env what an envFrom of c sets, or by envFrom what an
// env or an envFrom of c sets. What c has already p does not bring, and an env that p has too is
// p's own; an env decides over each envFrom.
func envMeetsEnvFrom(c *v1.Container, p *Preset) bool {
	sets := func(env []v1.EnvVar, name string) bool {
		return slices.ContainsFunc(env, func(e v1.EnvVar) bool { return e.Name == name })
	}
	has := func(sources []v1.EnvFromSource, s v1.EnvFromSource) bool {
		return slices.ContainsFunc(sources, func(other v1.EnvFromSource) bool {
			return other.Prefix == s.Prefix && other.ConfigMapRef.Name == s.ConfigMapRef.Name
		})
	}
	for _, s := range c.EnvFrom {
		for _, key := range keysOf(&s) {
			if name := s.Prefix + key; sets(p.Env, name) && !sets(c.Env, name) {
				return true
			}
		}
	}
	for _, s := range p.EnvFrom {
		for _, key := range keysOf(&s) {
			name := s.Prefix + key
			switch {
			case has(c.EnvFrom, s) || sets(p.Env, name):
			case sets(c.Env, name):
				return true
			default:
				for _, other := range c.EnvFrom {
					for _, otherKey := range keysOf(&other) {
						if other.Prefix+otherKey == name {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// generator makes pods and presets of few names and values, so that they often meet.
type generator struct {
	bytes []byte
	// own is a part of the names of a preset that others do not have; "" for none.
	own string
	// common counts the presets that have names in common with one another.
	common int
}

// upTo is a number from 0 to n-1.
func (g *generator) upTo(n int) int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b) % n
}

// optional is not set, or true or false.
func (g *generator) optional() *bool {
	n := g.upTo(3)
	if n == 0 {
		return nil
	}
	yes := n == 1
	return &yes
}

func (g *generator) env() []v1.EnvVar {
	var env []v1.EnvVar
	for name, n := 0, g.upTo(4); name < n; name++ {
		if g.upTo(2) == 0 {
			e := v1.EnvVar{Name: fmt.Sprintf("NAME_%d%s", name, g.own)}
			if value := g.upTo(3); value < 2 {
				e.Value = fmt.Sprint(value)
			} else {
				e.ValueFrom = &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{Key: "key", Optional: g.optional()}}
			}
			env = append(env, e)
		}
	}
	return env
}

// envFrom has ConfigMaps that set what env does, or that do not exist.
func (g *generator) envFrom() []v1.EnvFromSource {
	var sources []v1.EnvFromSource
	for i, n := 0, g.upTo(3); i < n; i++ {
		source := v1.EnvFromSource{ConfigMapRef: &v1.ConfigMapEnvSource{}}
		source.ConfigMapRef.Name = fmt.Sprintf("NAME_%d%s", i, g.own)
		if g.own == "" {
			source.Prefix = []string{"", "NAME_"}[g.upTo(2)]
			source.ConfigMapRef.Name = []string{"NAME_0", "NAME_1", "1", "absent"}[g.upTo(4)]
		}
		source.ConfigMapRef.Optional = g.optional()
		if !slices.ContainsFunc(sources, func(s v1.EnvFromSource) bool { return sourceOf(&s) == sourceOf(&source) }) {
			sources = append(sources, source)
		}
	}
	return sources
}

// volumes are volumes, and a mount of each.
func (g *generator) volumes() (volumes []v1.Volume, mounts []v1.VolumeMount) {
	for i, n := 0, g.upTo(3); i < n; i++ {
		volume := emptyDir(fmt.Sprintf("volume-%d%s", i, g.own))
		if g.upTo(3) == 0 {
			volume = hostPath(volume.Name, "/srv")
		}
		volumes = append(volumes, volume)
		mounts = append(mounts, v1.VolumeMount{Name: volume.Name, MountPath: fmt.Sprintf("/path/%d%s", i+g.upTo(2)*n, g.own)})
	}
	return volumes, mounts
}

func (g *generator) pod() *v1.Pod {
	pod := website(nil)
	volumes, mounts := g.volumes()
	pod.Spec.Volumes = volumes
	pod.Spec.Containers = nil
	for i, n := 0, 1+g.upTo(2); i < n; i++ {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: fmt.Sprintf("c%d", i), Env: g.env(), EnvFrom: g.envFrom(), VolumeMounts: mounts})
	}
	for i, n := 0, g.upTo(2); i < n; i++ {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: fmt.Sprintf("i%d", i), Env: g.env()})
	}
	return pod
}

func (g *generator) preset(i int) *Preset {
	p := &Preset{Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprint(i)), ResourceVersion: "1", Selector: labels.Everything()}
	if g.own = ""; g.upTo(2) == 0 {
		g.own = fmt.Sprintf("-of-%d", i)
	} else {
		g.common++
	}
	p.Env = g.env()
	p.EnvFrom = g.envFrom()
	p.Volumes, p.VolumeMounts = g.volumes()
	return p
}
