package inject

import (
	"fmt"
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

// withoutFilesOf leaves out the variables that come from a file in a volume that the init
// container c mounts: c writes that file, and would wait for it before it starts.
func withoutFilesOf(c *v1.Container, env []v1.EnvVar) []v1.EnvVar {
	written := func(e v1.EnvVar) bool {
		volume := fileVolume(&e)
		return volume != "" && mounts(c, volume)
	}
	if !slices.ContainsFunc(env, written) {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), written)
}

func mounts(c *v1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == volume })
}

// reads tells whether one of env comes from a file in volume.
func reads(env []v1.EnvVar, volume string) bool {
	return slices.ContainsFunc(env, func(e v1.EnvVar) bool { return fileVolume(&e) == volume })
}

// checkEnvFileMounts finds breaches of KEP-3721's rule, that only init containers may mount
// a volume of env files and none of them that reads one of them, of which the preset has a
// part.
func (a *attempt) checkEnvFileMounts(r *reasonList) {
	readByPod := func(volume string) bool {
		for i := range a.pod.Spec.InitContainers {
			if reads(a.pod.Spec.InitContainers[i].Env, volume) {
				return true
			}
		}
		for i := range a.pod.Spec.Containers {
			if reads(a.pod.Spec.Containers[i].Env, volume) {
				return true
			}
		}
		return false
	}
	breach := func(c *v1.Container, volume string) {
		r.add(fmt.Sprintf("Volume %s holds env files, so that container %s may not mount it", show(volume), show(c.Name)))
	}
	for _, add := range a.added {
		c := add.container
		init := a.isInit(c)
		for _, mount := range add.mounts {
			if reads(c.Env, mount.Name) || reads(add.env, mount.Name) || !init && (reads(a.preset.Env, mount.Name) || readByPod(mount.Name)) {
				breach(c, mount.Name)
			}
		}
		for _, mount := range c.VolumeMounts {
			if reads(add.env, mount.Name) || !init && a.addsReaderOf(mount.Name) {
				breach(c, mount.Name)
			}
		}
	}
}

// addsReaderOf tells whether the preset makes a container read env files of volume.
func (a *attempt) addsReaderOf(volume string) bool {
	return slices.ContainsFunc(a.added, func(add addition) bool { return reads(add.env, volume) })
}

func (a *attempt) isInit(c *v1.Container) bool {
	for i := range a.pod.Spec.InitContainers {
		if c == &a.pod.Spec.InitContainers[i] {
			return true
		}
	}
	return false
}

// checkEnvFileVolumes finds variables that come from a file in a volume that is not there,
// or is no emptyDir.
func (a *attempt) checkEnvFileVolumes(r *reasonList) {
	for _, add := range a.added {
		for i := range add.env {
			volume := fileVolume(&add.env[i])
			if volume == "" {
				continue
			}
			is := func(v v1.Volume) bool { return v.Name == volume && v.EmptyDir != nil }
			if !slices.ContainsFunc(a.pod.Spec.Volumes, is) && !slices.ContainsFunc(a.volumes, is) {
				r.add(fmt.Sprintf("Volume %s, which env %s reads a file of, is not an emptyDir of the pod", show(volume), show(add.env[i].Name)))
			}
		}
	}
}
