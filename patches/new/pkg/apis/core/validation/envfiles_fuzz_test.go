package validation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

// FuzzEnvFiles compares what validation says of the fileKeyRefs of a pod, and
// of who mounts their volumes, with a model that is written from the rules
// alone. The pod is made from shape; path and key are those of some of its
// references. Only the functions of this feature run, as the rest of a pod's
// validation would take most of the time.
func FuzzEnvFiles(f *testing.F) {
	f.Add([]byte{}, "", "")
	f.Add([]byte{0x01, 0x00, 0x01, 0x01, 0x01, 0x00, 0x01, 0x00, 0x01, 0x01, 0x01}, "dir/config.env", "KEY")
	f.Add([]byte("one of each kind of container, some of which mount what others consume"), "../config.env", "KEY=")
	f.Add([]byte("\x03\x03\x03\x02\x02\x01\x01\x02\x02\x01\x01\x02\x02\x01\x01\x02\x02\x01\x01"), "/a/../b", strings.Repeat("K", 129))
	f.Add([]byte("\x00\x01\x00\x01\x01\x01\x01\x00"), "..data/a..b", "9 lives: $%")
	f.Add([]byte("\x02\x00\x00\x02\x01\x01\x01\x01\x02\x02\x02\x02"), "a/..", "SCHL\u00dcSSEL")
	f.Add([]byte("\x00\x01\x00\x01\x01\x01\x01\x00"), strings.Repeat(strings.Repeat("x", 255)+"/", 16), "KEY")
	f.Add([]byte("\x00\x01\x00\x01\x01\x01\x01\x00"), "/a\x00/../"+strings.Repeat("x", 5000), "KEY")

	f.Fuzz(func(t *testing.T, shape []byte, path, key string) {
		spec := fuzzedPodSpec(shape, path, key)
		volumes := map[string]core.VolumeSource{}
		for _, volume := range spec.Volumes {
			volumes[volume.Name] = volume.VolumeSource
		}

		fldPath := field.NewPath("spec")
		got := validateFileKeyRefVolumes(spec, volumes, fldPath)
		got = append(got, ValidateEnvFileMounts(spec, fldPath)...)
		for _, c := range containersOf(spec) {
			for i, env := range c.Env {
				if env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil {
					selectorPath := field.NewPath(c.path).Child("env").Index(i).Child("valueFrom", "fileKeyRef")
					got = append(got, validateFileKeySelector(env.ValueFrom.FileKeyRef, selectorPath, PodValidationOptions{})...)
				}
			}
		}

		gotErrs := make([]string, 0, len(got))
		for _, err := range got {
			gotErrs = append(gotErrs, err.Field+": "+string(err.Type))
		}
		wantErrs := modelOfEnvFiles(spec, volumes)
		slices.Sort(gotErrs)
		slices.Sort(wantErrs)
		if !slices.Equal(gotErrs, wantErrs) {
			t.Errorf("want errors:\n%s\ngot:\n%s\nfor %+v", strings.Join(wantErrs, "\n"), strings.Join(gotErrs, "\n"), spec)
		}
	})
}

// modelOfEnvFiles returns the errors, as "field: type", that the rules ask for.
func modelOfEnvFiles(spec *core.PodSpec, volumes map[string]core.VolumeSource) []string {
	var want []string
	expect := func(errorType field.ErrorType, format string, args ...any) {
		want = append(want, fmt.Sprintf(format, args...)+": "+string(errorType))
	}

	consumes := func(c *core.Container, volume string) bool {
		return volume != "" && slices.ContainsFunc(c.Env, func(env core.EnvVar) bool {
			return env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil && env.ValueFrom.FileKeyRef.VolumeName == volume
		})
	}
	containers := containersOf(spec)
	for _, c := range containers {
		for i, mount := range c.VolumeMounts {
			anyConsumes := slices.ContainsFunc(containers, func(other namedContainer) bool { return consumes(other.Container, mount.Name) })
			if anyConsumes && !c.init || consumes(c.Container, mount.Name) {
				expect(field.ErrorTypeForbidden, "%s.volumeMounts[%d].name", c.path, i)
			}
		}
		for i, env := range c.Env {
			if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil {
				continue
			}
			ref := env.ValueFrom.FileKeyRef
			refPath := fmt.Sprintf("%s.env[%d].valueFrom.fileKeyRef", c.path, i)

			if volume, found := volumes[ref.VolumeName]; ref.VolumeName == "" {
				expect(field.ErrorTypeRequired, "%s.volumeName", refPath)
			} else if !found {
				expect(field.ErrorTypeNotFound, "%s.volumeName", refPath)
			} else if volume.EmptyDir == nil {
				expect(field.ErrorTypeInvalid, "%s.volumeName", refPath)
			}

			if ref.Path == "" {
				expect(field.ErrorTypeRequired, "%s.path", refPath)
			}
			if strings.HasPrefix(ref.Path, "/") {
				expect(field.ErrorTypeInvalid, "%s.path", refPath)
			}
			if strings.Contains("/"+ref.Path+"/", "/../") {
				expect(field.ErrorTypeInvalid, "%s.path", refPath)
			}

			if len(ref.Path) > 4096 {
				expect(field.ErrorTypeTooLong, "%s.path", refPath)
			}
			if slices.ContainsFunc(strings.Split(ref.Path, "/"), func(element string) bool { return len(element) > 255 }) {
				expect(field.ErrorTypeInvalid, "%s.path", refPath)
			}
			if strings.IndexByte(ref.Path, 0) >= 0 {
				expect(field.ErrorTypeInvalid, "%s.path", refPath)
			}
			if ref.Path != "" && ref.Path[len(ref.Path)-1] == '/' {
				expect(field.ErrorTypeInvalid, "%s.path", refPath)
			}

			if ref.Key == "" {
				expect(field.ErrorTypeRequired, "%s.key", refPath)
			}
			if len(ref.Key) > 128 {
				expect(field.ErrorTypeTooLong, "%s.key", refPath)
			}
			for _, b := range []byte(ref.Key) {
				if b < ' ' || b > '~' || b == '=' {
					expect(field.ErrorTypeInvalid, "%s.key", refPath)
					break
				}
			}
		}
	}
	return want
}

type namedContainer struct {
	*core.Container
	path string
	init bool
}

func containersOf(spec *core.PodSpec) []namedContainer {
	var containers []namedContainer
	for i := range spec.InitContainers {
		containers = append(containers, namedContainer{&spec.InitContainers[i], fmt.Sprintf("spec.initContainers[%d]", i), true})
	}
	for i := range spec.Containers {
		containers = append(containers, namedContainer{&spec.Containers[i], fmt.Sprintf("spec.containers[%d]", i), false})
	}
	for i := range spec.EphemeralContainers {
		c := (*core.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
		containers = append(containers, namedContainer{c, fmt.Sprintf("spec.ephemeralContainers[%d]", i), false})
	}
	return containers
}

// fuzzedPodSpec makes a pod of up to three containers of each kind, with up to
// two mounts and three variables each, from the bytes of shape. Bytes that are
// missing are zero.
func fuzzedPodSpec(shape []byte, path, key string) *core.PodSpec {
	next := func(n int) int {
		if len(shape) == 0 {
			return 0
		}
		b := int(shape[0])
		shape = shape[1:]
		return b % n
	}

	names := []string{"", "config", "more", "project", "missing"}
	fuzzedContainer := func() core.Container {
		c := core.Container{}
		for n := next(3); n > 0; n-- {
			c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: names[next(len(names))]})
		}
		for n := next(4); n > 0; n-- {
			ref := &core.FileKeySelector{VolumeName: names[next(len(names))], Path: "config.env", Key: "KEY"}
			switch next(6) {
			case 0:
				ref = nil
			case 1:
				ref.Path = path
			case 2:
				ref.Key = key
			case 3:
				ref.Path, ref.Key = path, key
			}
			env := core.EnvVar{Name: "NAME", Value: "value"}
			if ref != nil {
				env = core.EnvVar{Name: "NAME", ValueFrom: &core.EnvVarSource{FileKeyRef: ref}}
			}
			c.Env = append(c.Env, env)
		}
		return c
	}

	spec := &core.PodSpec{Volumes: []core.Volume{
		{Name: "config", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
		{Name: "more", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}},
		{Name: "project", VolumeSource: core.VolumeSource{Projected: &core.ProjectedVolumeSource{}}},
	}}
	for n := next(4); n > 0; n-- {
		c := fuzzedContainer()
		if next(2) == 1 {
			always := core.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	for n := next(4); n > 0; n-- {
		spec.Containers = append(spec.Containers, fuzzedContainer())
	}
	for n := next(4); n > 0; n-- {
		spec.EphemeralContainers = append(spec.EphemeralContainers, core.EphemeralContainer{
			EphemeralContainerCommon: core.EphemeralContainerCommon(fuzzedContainer()),
		})
	}
	return spec
}
