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
// looked at Exempt, and has sorted presets with Compare. Its work is linear in the sizes
// of pod and presets, and up to maxSteps for all presets together: presets for which too
// little of that is left are in conflict. It returns an error if ctx ends, and then the
// pod is not whole.
func Into(ctx context.Context, pod *v1.Pod, presets []*Preset, o Options) (Result, error) {
	result := Result{Record: Record{}}
	maps.Copy(result.Record, o.Before)
	steps := 0
	for _, p := range presets {
		before, again := o.Before[p.UID]
		if again && before == nil || !again && !p.Selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		parts := [][]container{newContainers(pod, nil)}
		if again {
			parts = nil
			for _, c := range newContainers(pod, before) {
				parts = append(parts, []container{c})
			}
		}
		a := &attempt{ctx: ctx, pod: pod, preset: p, options: &o, steps: &steps}
		if a.more(len(pod.Spec.Volumes) + len(p.Volumes)) {
			a.volumes, a.clashes = merge(pod.Spec.Volumes, p.Volumes, volumeName, sameVolume)
		}
		applied := again
		var left reasonList
		for _, containers := range parts {
			reasons := a.reasons(containers)
			if ctx.Err() != nil {
				return result, context.Cause(ctx)
			}
			if len(reasons) == 0 {
				a.apply()
				applied = true
				continue
			}
			if again {
				left.addContainer(containers[0].Name, reasons)
			} else {
				left.reasons = reasons
			}
			if steps > maxSteps {
				break
			}
		}
		if len(left.reasons) > 0 {
			result.Conflicts = append(result.Conflicts, Conflict{Preset: p, Reasons: left.sentences()})
		}
		if !applied {
			result.Record[p.UID] = nil
			// The annotation may have come with a copy of another pod.
			delete(pod.Annotations, AppliedAnnotation(p.Name))
			continue
		}
		result.Record[p.UID] = map[string]bool{}
		for _, c := range newContainers(pod, nil) {
			result.Record[p.UID][c.Name] = true
		}
		result.Applied = append(result.Applied, p)
	}
	return result, nil
}

// container is one of a pod.
type container struct {
	*v1.Container
	init bool
}

// newContainers are the containers of pod whose names are not known.
func newContainers(pod *v1.Pod, known map[string]bool) (found []container) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; !known[c.Name] {
			found = append(found, container{c, true})
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; !known[c.Name] {
			found = append(found, container{c, false})
		}
	}
	return found
}

// attempt is the injection of one preset into the containers of a pod, or into one after
// the other of those that came later.
type attempt struct {
	ctx     context.Context
	pod     *v1.Pod
	preset  *Preset
	options *Options

	steps   *int // of all attempts, see more
	volumes []v1.Volume
	clashes []string // the volumes that the pod has otherwise
	added   []addition
	podSize int // in bytes, once it matters
	bytes   int // of volumes and added
}

// addition is what a container lacks of the preset.
type addition struct {
	container
	env     []v1.EnvVar
	envFrom []v1.EnvFromSource
	mounts  []v1.VolumeMount
}

// maxSteps is how many steps an injection may take: a step is a look at a variable, a mount or a
// key of a ConfigMap or Secret, for one container. That is far more than what a pod that can be
// stored has of them, and takes about a second.
const maxSteps = 1 << 22

const tooMuch = "There is too much to compare"

// more counts steps. It returns false if they are too many, or the request has ended.
func (a *attempt) more(steps int) bool {
	*a.steps += steps
	return *a.steps <= maxSteps && a.ctx.Err() == nil
}

// reasons works out what containers lack of the preset, and what keeps the preset from being
// applied. They are worth nothing if the request has ended.
func (a *attempt) reasons(containers []container) []string {
	var r reasonList
	if a.preset.Broken != "" {
		r.add(a.preset.Broken)
		return r.sentences()
	}
	if !a.more(0) {
		r.add(tooMuch)
		return r.sentences()
	}
	a.added, a.bytes = nil, sizeOf(a.volumes)
	a.more(itemsOf(a.pod) + len(a.volumes))
	itemsOfPreset := 1 + len(a.preset.Env) + len(a.preset.EnvFrom) + len(a.preset.VolumeMounts)
	for _, c := range containers {
		// A large preset is not gone through for each of many containers.
		if a.tooLarge() || !a.more(itemsOfPreset) {
			break
		}
		a.compareContainer(c, &r)
	}
	if a.tooLarge() {
		r.add("The pod would be too large")
		return r.sentences()
	}
	if !a.more(0) {
		r.add(tooMuch)
		return r.sentences()
	}
	a.checkAnnotations(&r)
	r.addEach("Duplicate volume ", a.clashes)
	a.checkClaims(&r)
	a.checkTokens(&r)
	a.checkEnvFileMounts(&r)
	a.checkEnvFileVolumes(&r)
	return r.sentences()
}

// itemsOf is how many items of a pod are looked at, however few of its containers are new.
func itemsOf(pod *v1.Pod) int {
	items := len(pod.Annotations) + len(pod.Spec.Volumes)
	for _, c := range newContainers(pod, nil) {
		items += 1 + len(c.Env) + len(c.EnvFrom) + len(c.VolumeMounts)
	}
	return items
}

// compareContainer finds what c lacks of the preset, and what it has otherwise.
func (a *attempt) compareContainer(c container, r *reasonList) {
	add := addition{container: c}
	var clashes []string
	env := a.preset.Env
	if c.init {
		env = withoutFilesOf(c.Container, env)
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

	a.checkDevices(c.Container, add.mounts, r)
	a.checkPrivileges(c.Container, add.mounts, r)
	a.checkSources(c.Container, add, r)
	a.added = append(a.added, add)
	a.bytes += sizeOf(add.env) + sizeOf(add.envFrom) + sizeOf(add.mounts)
}

// apply adds to the pod what it lacks.
func (a *attempt) apply() {
	for _, add := range a.added {
		c := add.Container
		c.Env = appendCopies(c.Env, add.env, (*v1.EnvVar).DeepCopyInto)
		c.EnvFrom = appendCopies(c.EnvFrom, add.envFrom, (*v1.EnvFromSource).DeepCopyInto)
		c.VolumeMounts = appendCopies(c.VolumeMounts, add.mounts, (*v1.VolumeMount).DeepCopyInto)
	}
	a.pod.Spec.Volumes = appendCopies(a.pod.Spec.Volumes, a.volumes, (*v1.Volume).DeepCopyInto)
	a.volumes = nil
	if a.podSize > 0 {
		a.podSize += a.bytes
	}
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
