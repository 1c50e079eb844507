package pod

import (
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	api "k8s.io/kubernetes/pkg/apis/core"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/features"
)

// dropFileKeyRefs removes env[].valueFrom.fileKeyRef from every container while
// the EnvFiles feature is disabled, unless the old pod uses it. A variable
// that is left without a source is then refused by validation, as it is by an
// API server that does not know the field.
func dropFileKeyRefs(podSpec, oldPodSpec *api.PodSpec) {
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

// envFilePathOutOfBounds is true if a path of an env file breaks the bounds of
// paths. Such an object came from an API server without them.
func envFilePathOutOfBounds(podSpec *api.PodSpec) bool {
	outOfBounds := false
	visitFileKeyRefs(podSpec, func(source *api.EnvVarSource) bool {
		outOfBounds = len(apivalidation.ValidateEnvFilePathBounds(source.FileKeyRef.Path, nil)) > 0
		return !outOfBounds
	})
	return outOfBounds
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
