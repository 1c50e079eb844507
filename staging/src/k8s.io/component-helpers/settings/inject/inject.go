package inject

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Options are what an injection depends on beside the pod and the presets.
type Options struct {
	// Keys returns the keys of the ConfigMap or Secret that a source names, in the
	// namespace of the pod, or nil if it is not known or does not exist. It is called
	// once for each of them. Keys itself may be nil.
	Keys func(source *v1.EnvFromSource) []string

	// NoServiceAccount says that nothing gives a service account to a pod that names none,
	// as the admission plugin ServiceAccount does after an injection. Such a pod may have
	// no token of a service account.
	NoServiceAccount bool

	// Before is what an earlier injection into the same pod, in the same request, has
	// decided. That stands: containers that have come since are all that the presets
	// which were applied are looked at for, and one that is in conflict with its preset
	// gets nothing of it.
	Before Record

	known map[source]*keySet // what Keys has returned
}

// Record says, by the UID of a preset that was applied, which containers it was decided
// for. It has nil for a preset that was left out.
type Record map[types.UID]map[string]bool

// Result says what became of the presets.
type Result struct {
	// Applied are the presets that the pod has now, in the order of injection.
	Applied []*Preset
	// Conflicts are those that were left out this time, in the same order.
	Conflicts []Conflict
	// Record is for the Options of a later injection into the same pod.
	Record Record
}

// Into injects the presets that match the labels of pod and are in no conflict, in the
// order in which they come. It changes pod and copies what it adds to it. The caller has
// looked at Exempt, and has sorted presets with Compare. Its work for each preset is
// linear in the sizes of the two. It returns an error if ctx ends, and then the pod is
// not whole.
func Into(ctx context.Context, pod *v1.Pod, presets []*Preset, o Options) (Result, error) {
	result := Result{Record: Record{}}
	maps.Copy(result.Record, o.Before)
	for _, p := range presets {
		before, again := o.Before[p.UID]
		if again && before == nil || !again && !p.Selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		attempts := []*attempt{{pod: pod, preset: p, options: &o}}
		if again {
			attempts = nil
			for _, name := range newContainers(pod, before) {
				attempts = append(attempts, &attempt{pod: pod, preset: p, options: &o, only: name})
			}
		}
		applied := again
		for _, a := range attempts {
			if ctx.Err() != nil {
				return result, context.Cause(ctx)
			}
			if reasons := a.reasons(); len(reasons) > 0 {
				result.Conflicts = append(result.Conflicts, Conflict{Preset: p, Reasons: reasons})
				continue
			}
			a.apply()
			applied = true
		}
		if !applied {
			result.Record[p.UID] = nil
			// The annotation may have come with a copy of another pod.
			delete(pod.Annotations, AppliedAnnotation(p.Name))
			continue
		}
		result.Record[p.UID] = map[string]bool{}
		for _, name := range newContainers(pod, nil) {
			result.Record[p.UID][name] = true
		}
		result.Applied = append(result.Applied, p)
	}
	return result, nil
}

// newContainers are the names of the containers of pod that are not known.
func newContainers(pod *v1.Pod, known map[string]bool) (names []string) {
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if name := containers[i].Name; !known[name] {
				names = append(names, name)
			}
		}
	}
	return names
}

// attempt is the injection of one preset into a pod, or into one container that came
// after the others had it.
type attempt struct {
	pod     *v1.Pod
	preset  *Preset
	options *Options
	only    string // the name of the one container; "" for all

	volumes       []v1.Volume
	lookUps       int // of checkSources
	added         []addition
	before, bytes int // the size of pod, once it matters, and of volumes and added
}

// addition is what a container lacks of the preset.
type addition struct {
	container *v1.Container
	init      bool
	env       []v1.EnvVar
	envFrom   []v1.EnvFromSource
	mounts    []v1.VolumeMount
}

// eachContainer calls f for each container that is injected into.
func (a *attempt) eachContainer(f func(c *v1.Container, init bool)) {
	for i := range a.pod.Spec.InitContainers {
		if c := &a.pod.Spec.InitContainers[i]; a.only == "" || a.only == c.Name {
			f(c, true)
		}
	}
	for i := range a.pod.Spec.Containers {
		if c := &a.pod.Spec.Containers[i]; a.only == "" || a.only == c.Name {
			f(c, false)
		}
	}
}

// reasons works out what the pod lacks of the preset, and what keeps the preset from
// being applied.
func (a *attempt) reasons() []string {
	var r reasonList
	if a.preset.Broken != "" {
		r.add(a.preset.Broken)
		return r.sentences()
	}
	var volumes []string
	a.volumes, volumes = merge(a.pod.Spec.Volumes, a.preset.Volumes, volumeName, sameVolume)
	a.bytes = sizeOf(a.volumes)
	a.eachContainer(func(c *v1.Container, init bool) {
		// A large preset is not gone through for each of many containers.
		if !a.tooLarge() {
			a.compareContainer(c, init, &r)
		}
	})
	if a.tooLarge() {
		r.add("The pod would be too large")
		return r.sentences()
	}
	a.checkAnnotations(&r)
	r.addEach("Duplicate volume ", volumes)
	a.checkClaims(&r)
	a.checkTokens(&r)
	a.checkEnvFileMounts(&r)
	a.checkEnvFileVolumes(&r)
	return r.sentences()
}

// compareContainer finds what c lacks of the preset, and what it has otherwise.
func (a *attempt) compareContainer(c *v1.Container, init bool, r *reasonList) {
	add := addition{container: c, init: init}
	var clashes []string
	env := a.preset.Env
	if init {
		env = withoutFilesOf(c, env)
	}
	add.env, clashes = merge(c.Env, env, envName, sameEnv)
	r.addEach("Duplicate env ", clashes)

	var sources []source
	add.envFrom, sources = merge(c.EnvFrom, a.preset.EnvFrom, sourceOf, sameEnvFrom)
	for _, s := range sources {
		r.add("Duplicate envFrom " + s.String())
	}

	add.mounts, clashes = merge(c.VolumeMounts, a.preset.VolumeMounts, mountPath, sameMount)
	r.addEach("Duplicate mountPath ", clashes)

	a.checkDevices(c, add.mounts, r)
	a.checkPrivileges(c, add.mounts, r)
	a.checkSources(c, add, r)
	a.added = append(a.added, add)
	a.bytes += sizeOf(add.env) + sizeOf(add.envFrom) + sizeOf(add.mounts)
}

// apply adds to the pod what it lacks.
func (a *attempt) apply() {
	for _, add := range a.added {
		c := add.container
		c.Env = appendCopies(c.Env, add.env, (*v1.EnvVar).DeepCopyInto)
		c.EnvFrom = appendCopies(c.EnvFrom, add.envFrom, (*v1.EnvFromSource).DeepCopyInto)
		c.VolumeMounts = appendCopies(c.VolumeMounts, add.mounts, (*v1.VolumeMount).DeepCopyInto)
	}
	a.pod.Spec.Volumes = appendCopies(a.pod.Spec.Volumes, a.volumes, (*v1.Volume).DeepCopyInto)
	if a.pod.Annotations == nil {
		a.pod.Annotations = map[string]string{}
	}
	a.pod.Annotations[AppliedAnnotation(a.preset.Name)] = a.preset.ResourceVersion
}

// appendCopies appends deep copies, into memory that nothing else uses.
func appendCopies[T any](to, items []T, deepCopy func(in, out *T)) []T {
	to = slices.Grow(slices.Clip(to), len(items))
	for i := range items {
		to = to[:len(to)+1]
		deepCopy(&items[i], &to[len(to)-1])
	}
	return to
}
