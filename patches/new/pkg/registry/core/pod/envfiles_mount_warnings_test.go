package pod

import (
	"slices"
	"testing"

	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	podtest "k8s.io/kubernetes/pkg/api/pod/testing"
	api "k8s.io/kubernetes/pkg/apis/core"
)

func TestEphemeralContainersWarnOfEnvFileMounts(t *testing.T) {
	pod := podtest.MakePod("pod", podtest.SetVolumes(podtest.MakeEmptyVolume("config")),
		podtest.SetContainers(podtest.MakeContainer("app", func(c *api.Container) {
			c.Env = []api.EnvVar{{Name: "A", ValueFrom: &api.EnvVarSource{
				FileKeyRef: &api.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
			}}}
		})))
	for _, tc := range []struct {
		name  string
		debug api.EphemeralContainerCommon
		want  []string
	}{
		{name: "one that does not mount the volume", debug: api.EphemeralContainerCommon{Name: "debug"}},
		{
			name:  "one that mounts the volume",
			debug: api.EphemeralContainerCommon{Name: "debug", VolumeMounts: []api.VolumeMount{{Name: "config", MountPath: "/config"}}},
			want: []string{`spec.ephemeralContainers[0].volumeMounts[0].name: spec.containers[0].env[0].valueFrom.fileKeyRef takes a file from volume "config", ` +
				"so only init containers may mount it"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := pod.DeepCopy()
			changed.Spec.EphemeralContainers = []api.EphemeralContainer{{EphemeralContainerCommon: tc.debug}}
			if got := EphemeralContainersStrategy.WarningsOnUpdate(genericapirequest.NewDefaultContext(), changed, pod); !slices.Equal(got, tc.want) {
				t.Errorf("want warnings %q, got %q", tc.want, got)
			}
		})
	}
}
