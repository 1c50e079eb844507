package pod

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestWarningsForEnvFileMounts(t *testing.T) {
	env := []api.EnvVar{{Name: "A", ValueFrom: &api.EnvVarSource{
		FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
	}}}
	mounts := []api.VolumeMount{{Name: "config", MountPath: "/config"}}
	const (
		reference = `containers[0].env[0].valueFrom.fileKeyRef takes a file from volume "config", so only init containers may mount it`
		initOwn   = `initContainers[0].env[0].valueFrom.fileKeyRef takes a file from volume "config", so this container may not mount it; mount it in another init container`
	)
	for _, tc := range []struct {
		name string
		spec api.PodSpec
		want [][2]string // the mount and what is wrong with it, below the spec
	}{
		{
			name: "an init container mounts, a container consumes",
			spec: api.PodSpec{InitContainers: []api.Container{{VolumeMounts: mounts}}, Containers: []api.Container{{Env: env}}},
		},
		{
			name: "a container mounts what it consumes",
			spec: api.PodSpec{Containers: []api.Container{{Env: env, VolumeMounts: mounts}}},
			want: [][2]string{{"containers[0].volumeMounts[0].name", reference}},
		},
		{
			name: "a container mounts what another one consumes",
			spec: api.PodSpec{Containers: []api.Container{{Env: env}, {VolumeMounts: mounts}}},
			want: [][2]string{{"containers[1].volumeMounts[0].name", reference}},
		},
		{
			name: "an init container mounts what it consumes",
			spec: api.PodSpec{InitContainers: []api.Container{{Env: env, VolumeMounts: mounts}}},
			want: [][2]string{{"initContainers[0].volumeMounts[0].name", initOwn}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, template := range []*field.Path{nil, field.NewPath("spec", "template")} {
				got := GetWarningsForPod(context.TODO(), &api.Pod{Spec: tc.spec}, nil)
				if template != nil {
					got = GetWarningsForPodTemplate(context.TODO(), template, &api.PodTemplateSpec{Spec: tc.spec}, nil)
				}
				var want []string
				for _, w := range tc.want {
					want = append(want, template.Child("spec", w[0]).String()+": "+template.Child("spec", w[1]).String())
				}
				// A container that waits for a file of its own has another warning as well.
				got = slices.DeleteFunc(got, func(warning string) bool { return !slices.Contains(want, warning) && len(want) > 0 })
				if !slices.Equal(got, want) {
					t.Errorf("want warnings %q, got %q", want, got)
				}
			}
		})
	}
}
