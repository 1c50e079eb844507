package validation

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
)

func TestValidateEnvFileMounts(t *testing.T) {
	testCases := []struct {
		name      string
		init      []core.Container
		regular   []core.Container
		ephemeral []core.Container
		want      map[string]string // field: detail
	}{
		{
			name:    "an init container mounts, a container consumes",
			init:    []core.Container{mountsVolumes("config")},
			regular: []core.Container{consumesVolumes("config")},
		},
		{
			name:    "a sidecar mounts, a container consumes",
			init:    []core.Container{asSidecar(mountsVolumes("config"))},
			regular: []core.Container{consumesVolumes("config")},
		},
		{
			name:      "an init container mounts, all other kinds consume",
			init:      []core.Container{mountsVolumes("config"), consumesVolumes("config"), asSidecar(consumesVolumes("config"))},
			regular:   []core.Container{consumesVolumes("config")},
			ephemeral: []core.Container{consumesVolumes("config")},
		},
		{
			name:      "every kind of container mounts a volume that none consumes",
			init:      []core.Container{mountsVolumes("data"), asSidecar(mountsVolumes("data"))},
			regular:   []core.Container{mountsVolumes("data"), consumesVolumes("config")},
			ephemeral: []core.Container{mountsVolumes("data")},
		},
		{
			name:    "an init container mounts one volume of env files and consumes another",
			init:    []core.Container{mountsVolumes("config"), mountsAndConsumes([]string{"more"}, []string{"config"})},
			regular: []core.Container{consumesVolumes("more")},
		},
		{
			name:    "a container consumes nothing that has a name",
			regular: []core.Container{mountsAndConsumes([]string{""}, []string{""})},
		},
		{
			name:    "a container mounts what it consumes",
			regular: []core.Container{mountsAndConsumes([]string{"config"}, []string{"config"})},
			want: map[string]string{
				"spec.containers[0].volumeMounts[0].name": `spec.containers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name:    "a container mounts what another container consumes",
			regular: []core.Container{consumesVolumes("config"), mountsAndConsumes([]string{"data", "config"}, nil)},
			want: map[string]string{
				"spec.containers[1].volumeMounts[1].name": `spec.containers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name:    "a container mounts what an init container consumes",
			init:    []core.Container{mountsVolumes("config"), consumesVolumes("config")},
			regular: []core.Container{mountsVolumes("config")},
			want: map[string]string{
				"spec.containers[0].volumeMounts[0].name": `spec.initContainers[1].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name:    "a container mounts what a sidecar consumes",
			init:    []core.Container{asSidecar(consumesVolumes("config"))},
			regular: []core.Container{mountsVolumes("config")},
			want: map[string]string{
				"spec.containers[0].volumeMounts[0].name": `spec.initContainers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name:      "a container mounts what an ephemeral container consumes",
			regular:   []core.Container{mountsVolumes("config")},
			ephemeral: []core.Container{consumesVolumes("config")},
			want: map[string]string{
				"spec.containers[0].volumeMounts[0].name": `spec.ephemeralContainers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name:      "an ephemeral container mounts what a container consumes",
			regular:   []core.Container{consumesVolumes("config")},
			ephemeral: []core.Container{{}, mountsVolumes("config")},
			want: map[string]string{
				"spec.ephemeralContainers[1].volumeMounts[0].name": `spec.containers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
		{
			name: "an init container mounts what it consumes",
			init: []core.Container{mountsVolumes("config"), mountsAndConsumes([]string{"data", "config"}, []string{"config"})},
			want: map[string]string{
				"spec.initContainers[1].volumeMounts[1].name": `spec.initContainers[1].env[1].valueFrom.fileKeyRef takes a file from volume "config", so this container may not mount it; mount it in another init container`,
			},
		},
		{
			name: "a sidecar mounts what it consumes",
			init: []core.Container{asSidecar(mountsAndConsumes([]string{"config"}, []string{"config"}))},
			want: map[string]string{
				"spec.initContainers[0].volumeMounts[0].name": `spec.initContainers[0].env[1].valueFrom.fileKeyRef takes a file from volume "config", so this container may not mount it; mount it in another init container`,
			},
		},
		{
			name:      "every mount that breaks the rule is named, with the first reference to its volume",
			regular:   []core.Container{mountsAndConsumes([]string{"config", "config"}, []string{"more", "config"}), mountsAndConsumes([]string{"more"}, []string{"more"})},
			ephemeral: []core.Container{mountsVolumes("config")},
			want: map[string]string{
				"spec.containers[0].volumeMounts[0].name":          `spec.containers[0].env[2].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
				"spec.containers[0].volumeMounts[1].name":          `spec.containers[0].env[2].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
				"spec.containers[1].volumeMounts[0].name":          `spec.containers[0].env[1].valueFrom.fileKeyRef takes a file from volume "more", so only init containers may mount it`,
				"spec.ephemeralContainers[0].volumeMounts[0].name": `spec.containers[0].env[2].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`,
			},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			spec := &core.PodSpec{InitContainers: tc.init, Containers: tc.regular}
			for _, c := range tc.ephemeral {
				spec.EphemeralContainers = append(spec.EphemeralContainers, asEphemeral(c))
			}

			got := ValidateEnvFileMounts(spec, field.NewPath("spec"))

			if len(got) != len(tc.want) {
				t.Errorf("want %d errors, got: %v", len(tc.want), got)
			}
			for _, err := range got {
				if err.Type != field.ErrorTypeForbidden || err.Detail != tc.want[err.Field] {
					t.Errorf("want %s: Forbidden: %s, got: %v", err.Field, tc.want[err.Field], err)
				}
			}
		})
	}
}

func mountsVolumes(volumes ...string) core.Container { return mountsAndConsumes(volumes, nil) }

func consumesVolumes(volumes ...string) core.Container { return mountsAndConsumes(nil, volumes) }

// mountsAndConsumes returns a container that mounts some volumes, and consumes others from
// its second variable on.
func mountsAndConsumes(mounted, consumed []string) core.Container {
	c := core.Container{Env: []core.EnvVar{{Name: "LITERAL", Value: "value"}}}
	for i, name := range mounted {
		c.VolumeMounts = append(c.VolumeMounts, core.VolumeMount{Name: name, MountPath: fmt.Sprintf("/mnt/%d", i)})
	}
	for i, name := range consumed {
		c.Env = append(c.Env, core.EnvVar{Name: fmt.Sprintf("FROM_FILE_%d", i), ValueFrom: &core.EnvVarSource{
			FileKeyRef: &core.FileKeySelector{VolumeName: name, Path: "config.env", Key: "KEY"},
		}})
	}
	return c
}

func asSidecar(c core.Container) core.Container {
	always := core.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func asEphemeral(c core.Container) core.EphemeralContainer {
	return core.EphemeralContainer{EphemeralContainerCommon: core.EphemeralContainerCommon(c)}
}
