package pod

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	podshelper "k8s.io/kubernetes/pkg/apis/core/pods"
	"k8s.io/utils/ptr"
)

// warningsForEnvFiles warns of each variable that needs an env file which nothing
// in the pod can have written by the time that its container starts: the volume
// is an emptyDir, and an init container waits for those before it. Ephemeral containers are no part of a pod when it is
// created, and updates of pods do not warn.
func warningsForEnvFiles(podSpec *api.PodSpec, specPath *field.Path) []string {
	warnings := warningsForUnreadableEnvFiles(podSpec, specPath)
	writable, readOnly := sets.New[string](), sets.New[string]() // volumes that init containers have mounted so far
	check := func(c *api.Container, containerPath *field.Path, writer string) {
		for i, env := range c.Env {
			if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil || ptr.Deref(env.ValueFrom.FileKeyRef.Optional, false) {
				continue
			}
			volume := env.ValueFrom.FileKeyRef.VolumeName
			if writable.Has(volume) {
				continue
			}
			how := ""
			if readOnly.Has(volume) {
				how = " other than read-only"
			}
			warnings = append(warnings, fmt.Sprintf("%s: no %s mounts volume %q%s, so nothing can have written the file; mount it in an %s, or set optional",
				containerPath.Child("env").Index(i).Child("valueFrom", "fileKeyRef"), writer, volume, how, writer))
		}
	}

	mounts := func(c *api.Container) {
		for _, mount := range c.VolumeMounts {
			if mount.ReadOnly {
				readOnly.Insert(mount.Name)
			} else {
				writable.Insert(mount.Name)
			}
		}
	}

	for i := range podSpec.InitContainers {
		c := &podSpec.InitContainers[i]
		check(c, specPath.Child("initContainers").Index(i), "earlier init container")
		mounts(c)
	}
	// Where the API lets them mount the volume, they may write the file for one another.
	for i := range podSpec.Containers {
		mounts(&podSpec.Containers[i])
	}
	for i := range podSpec.Containers {
		check(&podSpec.Containers[i], specPath.Child("containers").Index(i), "init container")
	}
	return warnings
}

// warningsForUnreadableEnvFiles warns of what the API accepts and no kubelet can
// read: a volume of huge pages, which has no files that are written as others
// are, and a key that no line of an env file defines.
func warningsForUnreadableEnvFiles(podSpec *api.PodSpec, specPath *field.Path) []string {
	hugePages := sets.New[string]()
	for _, volume := range podSpec.Volumes {
		if volume.EmptyDir != nil && strings.HasPrefix(string(volume.EmptyDir.Medium), string(api.StorageMediumHugePages)) {
			hugePages.Insert(volume.Name)
		}
	}
	var warnings []string
	podshelper.VisitContainersWithPath(podSpec, specPath, func(c *api.Container, containerPath *field.Path) bool {
		for i, env := range c.Env {
			if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil {
				continue
			}
			ref, refPath := env.ValueFrom.FileKeyRef, containerPath.Child("env").Index(i).Child("valueFrom", "fileKeyRef")
			if hugePages.Has(ref.VolumeName) {
				warnings = append(warnings, fmt.Sprintf("%s: volume %q is in huge pages, which programs cannot write to as to a file; use another medium", refPath.Child("volumeName"), ref.VolumeName))
			}
			if strings.HasPrefix(ref.Key, "#") || strings.TrimSpace(ref.Key) != ref.Key {
				warnings = append(warnings, fmt.Sprintf("%s: %q starts with # or has white space at an end, which no name in an env file has", refPath.Child("key"), ref.Key))
			}
		}
		return true
	})
	return warnings
}
