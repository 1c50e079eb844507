package inject

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// fileVolume is the volume of the env file that a variable comes from, or "".
func fileVolume(e *v1.EnvVar) string {
	if e.ValueFrom == nil || e.ValueFrom.FileKeyRef == nil {
		return ""
	}
	return e.ValueFrom.FileKeyRef.VolumeName
}

// filesOf are the volumes of the env files that env reads.
func filesOf(env []v1.EnvVar) map[string]bool {
	var volumes map[string]bool
	for i := range env {
		if volume := fileVolume(&env[i]); volume != "" {
			if volumes == nil {
				volumes = map[string]bool{}
			}
			volumes[volume] = true
		}
	}
	return volumes
}

// withoutFilesOf leaves out the variables that come from a file in a volume that the init
// container c mounts: c writes that file, and would wait for it before it starts.
func withoutFilesOf(c *v1.Container, env []v1.EnvVar) []v1.EnvVar {
	if len(filesOf(env)) == 0 {
		return env
	}
	mounted := map[string]bool{}
	for _, mount := range c.VolumeMounts {
		mounted[mount.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(env), func(e v1.EnvVar) bool {
		return mounted[fileVolume(&e)]
	})
}

// checkEnvFileMounts finds breaches of KEP-3721's rule, that only init containers may mount
// a volume of env files and none of them that reads one of them, of which the preset has a
// part.
func (a *attempt) checkEnvFileMounts(r *reasonList) {
	readByPod, readByAdded := map[string]bool{}, map[string]bool{}
	for _, containers := range [][]v1.Container{a.pod.Spec.InitContainers, a.pod.Spec.Containers} {
		for i := range containers {
			maps.Copy(readByPod, filesOf(containers[i].Env))
		}
	}
	for _, add := range a.added {
		maps.Copy(readByAdded, filesOf(add.env))
	}
	breach := func(c *v1.Container, volume string) {
		r.add(fmt.Sprintf("Volume %s holds env files, so that container %s may not mount it", show(volume), show(c.Name)))
	}
	for _, add := range a.added {
		c := add.Container
		had, added := filesOf(c.Env), filesOf(add.env)
		for _, mount := range add.mounts {
			if had[mount.Name] || added[mount.Name] || !add.init && readByPod[mount.Name] {
				breach(c, mount.Name)
			}
		}
		for _, mount := range c.VolumeMounts {
			// Of an init container's own volumes it gets no variables, see withoutFilesOf.
			if !add.init && readByAdded[mount.Name] {
				breach(c, mount.Name)
			}
		}
	}
}

// checkEnvFileVolumes finds variables that come from a file in a volume that is not there,
// or is no emptyDir.
func (a *attempt) checkEnvFileVolumes(r *reasonList) {
	emptyDirs := map[string]bool{}
	for _, volumes := range [][]v1.Volume{a.pod.Spec.Volumes, a.volumes} {
		for i := range volumes {
			if volumes[i].EmptyDir != nil {
				emptyDirs[volumes[i].Name] = true
			}
		}
	}
	for _, add := range a.added {
		for i := range add.env {
			if volume := fileVolume(&add.env[i]); volume != "" && !emptyDirs[volume] {
				r.add(fmt.Sprintf("Volume %s, which env %s reads a file of, is not an emptyDir of the pod", show(volume), show(add.env[i].Name)))
			}
		}
	}
}
