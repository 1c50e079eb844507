package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
)

// ValidateEnvFileMounts checks that no container can write an env file while or
// after the kubelet reads it for another one: a volume that any container
// consumes through fileKeyRef may be mounted by init containers only,
// restartable ones included, and by none that consumes it itself. It needs no
// list of volumes, so that it can check a template whose volumes are not all
// known yet.
//
// KEP-3721, "Container Behavior".
func ValidateEnvFileMounts(spec *core.PodSpec, fldPath *field.Path) field.ErrorList {
	consumed := envFileVolumes{}
	podshelper.VisitContainersWithPath(spec, fldPath, func(c *core.Container, containerPath *field.Path) bool {
		consumed.add(c, containerPath)
		return true
	})
	if len(consumed) == 0 {
		return nil
	}

	allErrs := field.ErrorList{}
	for i := range spec.InitContainers {
		c, containerPath := &spec.InitContainers[i], fldPath.Child("initContainers").Index(i)
		consumedHere := envFileVolumes{}
		consumedHere.add(c, containerPath)
		allErrs = append(allErrs, consumedHere.forbid(c.VolumeMounts, containerPath, "this container may not mount it; mount it in another init container")...)
	}
	const initOnly = "only init containers may mount it"
	for i := range spec.Containers {
		allErrs = append(allErrs, consumed.forbid(spec.Containers[i].VolumeMounts, fldPath.Child("containers").Index(i), initOnly)...)
	}
	for i := range spec.EphemeralContainers {
		allErrs = append(allErrs, consumed.forbid(spec.EphemeralContainers[i].VolumeMounts, fldPath.Child("ephemeralContainers").Index(i), initOnly)...)
	}
	return allErrs
}

// envFileVolumes holds, by name, the volumes that fileKeyRefs take files from,
// each with the path of the first such reference.
type envFileVolumes map[string]*field.Path

func (v envFileVolumes) add(c *core.Container, containerPath *field.Path) {
	for i, env := range c.Env {
		if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil || len(env.ValueFrom.FileKeyRef.VolumeName) == 0 {
			continue
		}
		if name := env.ValueFrom.FileKeyRef.VolumeName; v[name] == nil {
			v[name] = containerPath.Child("env").Index(i).Child("valueFrom", "fileKeyRef")
		}
	}
}

// forbid returns an error for each of a container's mounts of these volumes.
func (v envFileVolumes) forbid(mounts []core.VolumeMount, containerPath *field.Path, remedy string) field.ErrorList {
	allErrs := field.ErrorList{}
	for i, mount := range mounts {
		if reference, found := v[mount.Name]; found {
			allErrs = append(allErrs, field.Forbidden(containerPath.Child("volumeMounts").Index(i).Child("name"),
				fmt.Sprintf("%s takes a file from volume %q, so %s", reference, mount.Name, remedy)))
		}
	}
	return allErrs
}
