/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
