package pod

import (
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// DropFileKeyRefs removes env[].valueFrom.fileKeyRef from every container while
// the EnvFiles feature is disabled, unless the old pod uses it. A variable
// that is left without a source is then refused by validation, as it is by an
// API server that does not know the field.
func DropFileKeyRefs(podSpec, oldPodSpec *api.PodSpec) {
	if utilfeature.DefaultFeatureGate.Enabled(features.EnvFiles) || fileKeyRefInUse(oldPodSpec) {
		return
	}
	visitFileKeyRefs(podSpec, func(source *api.EnvVarSource) bool {
		source.FileKeyRef = nil
		return true
	})
}

func fileKeyRefInUse(podSpec *api.PodSpec) bool {
	inUse := false
	visitFileKeyRefs(podSpec, func(*api.EnvVarSource) bool {
		inUse = true
		return false
	})
	return inUse
}

// mountsEnvFileVolumes is true if a container mounts a volume of env files that
// it may not mount. Such an object came from an API server without that rule.
func mountsEnvFileVolumes(podSpec *api.PodSpec) bool {
	return len(apivalidation.ValidateEnvFileMounts(podSpec, nil)) > 0
}

// storedFileKeyRefs returns the paths and keys of a pod's fileKeyRefs. Whatever API
// server has let them in, they may stay.
func storedFileKeyRefs(podSpec *api.PodSpec) (paths, keys sets.Set[string]) {
	paths, keys = sets.New[string](), sets.New[string]()
	visitFileKeyRefs(podSpec, func(source *api.EnvVarSource) bool {
		paths.Insert(source.FileKeyRef.Path)
		keys.Insert(source.FileKeyRef.Key)
		return true
	})
	return paths, keys
}

// visitFileKeyRefs calls visitor with each source of a variable that is a
// fileKeyRef, until visitor returns false.
func visitFileKeyRefs(podSpec *api.PodSpec, visitor func(*api.EnvVarSource) bool) {
	if podSpec == nil {
		return
	}
	VisitContainers(podSpec, AllContainers, func(c *api.Container, _ ContainerType) bool {
		for i := range c.Env {
			if source := c.Env[i].ValueFrom; source != nil && source.FileKeyRef != nil && !visitor(source) {
				return false
			}
		}
		return true
	})
}
