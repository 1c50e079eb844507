package pod

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

func TestWarningsForEnvFiles(t *testing.T) {
	from := func(volume string) api.EnvVar {
		return api.EnvVar{Name: "FROM_" + volume, ValueFrom: &api.EnvVarSource{
			FileKeyRef: &api.FileKeySelector{VolumeName: volume, Path: "config.env", Key: "KEY"},
		}}
	}
	optional := func(env api.EnvVar, value bool) api.EnvVar {
		env.ValueFrom.FileKeyRef.Optional = &value
		return env
	}
	key := func(env api.EnvVar, key string) api.EnvVar {
		env.Name, env.ValueFrom.FileKeyRef.Key = "FROM_"+key, key
		return env
	}
	literal := api.EnvVar{Name: "LITERAL", Value: "value"}
	fromConfigMap := api.EnvVar{Name: "FROM_CONFIGMAP", ValueFrom: &api.EnvVarSource{ConfigMapKeyRef: &api.ConfigMapKeySelector{Key: "KEY"}}}

	app := func(env ...api.EnvVar) []api.Container { return []api.Container{{Name: "app", Env: env}} }
	mounting := func(volumes ...string) api.Container {
		c := api.Container{Name: "setup"}
		for _, name := range volumes {
			c.VolumeMounts = append(c.VolumeMounts, api.VolumeMount{Name: name, MountPath: "/" + name})
		}
		return c
	}
	readOnly := func(c api.Container) api.Container {
		for i := range c.VolumeMounts {
			c.VolumeMounts[i].ReadOnly = true
		}
		return c
	}
	sidecar := func(c api.Container) api.Container {
		c.RestartPolicy = ptr.To(api.ContainerRestartPolicyAlways)
		return c
	}

	testCases := []struct {
		name string
		spec api.PodSpec
		want []string
	}{
		{name: "no env files", spec: api.PodSpec{Containers: app(literal, fromConfigMap)}},
		{
			name: "an init container mounts the volume",
			spec: api.PodSpec{InitContainers: []api.Container{mounting("config")}, Containers: app(from("config"))},
		},
		{
			name: "a sidecar mounts the volume",
			spec: api.PodSpec{InitContainers: []api.Container{sidecar(mounting("config"))}, Containers: app(from("config"))},
		},
		{
			name: "the last of the init containers mounts the volume",
			spec: api.PodSpec{InitContainers: []api.Container{mounting(), mounting("other", "config")}, Containers: app(from("config"))},
		},
		{
			name: "no init container, but the variable is optional",
			spec: api.PodSpec{Containers: app(optional(from("config"), true))},
		},
		{
			name: "no init container",
			spec: api.PodSpec{Containers: app(literal, from("config"))},
			want: []string{
				`spec.containers[0].env[1].valueFrom.fileKeyRef: no init container mounts volume "config", so nothing can have written the file; mount it in an init container, or set optional`,
			},
		},
		{
			name: "no init container, and the variable says that it is not optional",
			spec: api.PodSpec{Containers: app(optional(from("config"), false))},
			want: []string{
				`spec.containers[0].env[0].valueFrom.fileKeyRef: no init container mounts volume "config", so nothing can have written the file; mount it in an init container, or set optional`,
			},
		},
		{
			name: "one warning for each variable of each container whose volume is mounted nowhere",
			spec: api.PodSpec{
				InitContainers: []api.Container{mounting("config")},
				Containers: []api.Container{
					{Name: "app", Env: []api.EnvVar{from("other"), from("config"), from("another")}},
					{Name: "more", Env: []api.EnvVar{from("more")}},
				},
			},
			want: []string{
				`spec.containers[0].env[0].valueFrom.fileKeyRef: no init container mounts volume "other", so nothing can have written the file; mount it in an init container, or set optional`,
				`spec.containers[0].env[2].valueFrom.fileKeyRef: no init container mounts volume "another", so nothing can have written the file; mount it in an init container, or set optional`,
				`spec.containers[1].env[0].valueFrom.fileKeyRef: no init container mounts volume "more", so nothing can have written the file; mount it in an init container, or set optional`,
			},
		},
		{
			name: "init containers can only read the volume",
			spec: api.PodSpec{InitContainers: []api.Container{readOnly(mounting("config"))}, Containers: app(from("config"))},
			want: []string{
				`spec.containers[0].env[0].valueFrom.fileKeyRef: no init container mounts volume "config" other than read-only, so nothing can have written the file; mount it in an init container, or set optional`,
			},
		},
		{
			name: "one init container can only read the volume, another can write to it",
			spec: api.PodSpec{InitContainers: []api.Container{mounting("config"), readOnly(mounting("config"))}, Containers: app(from("config"))},
		},
		{
			name: "an init container consumes what an earlier one mounts",
			spec: api.PodSpec{InitContainers: []api.Container{mounting("config"), {Name: "reader", Env: []api.EnvVar{from("config")}}}},
		},
		{
			name: "a sidecar consumes what an earlier sidecar mounts",
			spec: api.PodSpec{InitContainers: []api.Container{
				sidecar(mounting("config")), sidecar(api.Container{Name: "reader", Env: []api.EnvVar{from("config")}}),
			}},
		},
		{
			name: "an init container consumes what only a later one mounts",
			spec: api.PodSpec{
				InitContainers: []api.Container{{Name: "reader", Env: []api.EnvVar{from("config")}}, mounting("config")},
				Containers:     app(from("config")),
			},
			want: []string{
				`spec.initContainers[0].env[0].valueFrom.fileKeyRef: no earlier init container mounts volume "config", so nothing can have written the file; mount it in an earlier init container, or set optional`,
			},
		},
		{
			name: "a sidecar consumes what only a later init container mounts",
			spec: api.PodSpec{
				InitContainers: []api.Container{sidecar(api.Container{Name: "reader", Env: []api.EnvVar{from("config")}}), mounting("config")},
			},
			want: []string{
				`spec.initContainers[0].env[0].valueFrom.fileKeyRef: no earlier init container mounts volume "config", so nothing can have written the file; mount it in an earlier init container, or set optional`,
			},
		},
		{
			name: "a volume of huge pages",
			spec: api.PodSpec{
				InitContainers: []api.Container{mounting("huge")}, Containers: app(from("huge")),
				Volumes: []api.Volume{{Name: "huge", VolumeSource: api.VolumeSource{EmptyDir: &api.EmptyDirVolumeSource{Medium: "HugePages-2Mi"}}}},
			},
			want: []string{
				`spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: volume "huge" is in huge pages, which programs cannot write to as to a file; use another medium`,
			},
		},
		{
			name: "a volume in memory",
			spec: api.PodSpec{
				InitContainers: []api.Container{mounting("config")}, Containers: app(from("config")),
				Volumes: []api.Volume{{Name: "config", VolumeSource: api.VolumeSource{EmptyDir: &api.EmptyDirVolumeSource{Medium: api.StorageMediumMemory}}}},
			},
		},
		{
			name: "a pod for Windows, where from v1.34 on the kubelet reads with the reader of the release",
			spec: api.PodSpec{OS: &api.PodOS{Name: api.Windows}, InitContainers: []api.Container{mounting("config")}, Containers: app(from("config"))},
		},
		{
			name: "keys that no file defines",
			spec: api.PodSpec{
				InitContainers: []api.Container{mounting("config")},
				Containers:     app(key(from("config"), "#KEY"), key(from("config"), " KEY"), key(from("config"), "KEY "), key(from("config"), "K#E Y")),
			},
			want: []string{
				`spec.containers[0].env[0].valueFrom.fileKeyRef.key: "#KEY" starts with # or has white space at an end, which no name in an env file has`,
				`spec.containers[0].env[1].valueFrom.fileKeyRef.key: " KEY" starts with # or has white space at an end, which no name in an env file has`,
				`spec.containers[0].env[2].valueFrom.fileKeyRef.key: "KEY " starts with # or has white space at an end, which no name in an env file has`,
			},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			got := GetWarningsForPod(context.TODO(), &api.Pod{Spec: tc.spec}, nil)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected warnings for the pod (-want, +got):\n%s", diff)
			}

			var wantInTemplate []string
			for _, warning := range tc.want {
				wantInTemplate = append(wantInTemplate, "spec.template."+warning)
			}
			got = GetWarningsForPodTemplate(context.TODO(), field.NewPath("spec", "template"), &api.PodTemplateSpec{Spec: tc.spec}, nil)
			if diff := cmp.Diff(wantInTemplate, got); diff != "" {
				t.Errorf("unexpected warnings for the template (-want, +got):\n%s", diff)
			}
		})
	}
}

// Where the API lets containers mount a volume of env files, one may write for another.
func TestWarningsForEnvFilesOfOtherContainers(t *testing.T) {
	spec := &api.PodSpec{Containers: []api.Container{
		{Name: "app", Env: []api.EnvVar{{Name: "A", ValueFrom: &api.EnvVarSource{
			FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
		}}}},
		{Name: "writer", VolumeMounts: []api.VolumeMount{{Name: "config", MountPath: "/config"}}},
	}}
	if got := warningsForEnvFiles(spec, field.NewPath("spec")); len(got) != 0 {
		t.Errorf("unexpected warnings: %q", got)
	}

	spec.Containers[1].VolumeMounts[0].ReadOnly = true
	if got := warningsForEnvFiles(spec, field.NewPath("spec")); len(got) != 1 {
		t.Errorf("want one warning, as nothing can have written the file, got: %q", got)
	}
}
