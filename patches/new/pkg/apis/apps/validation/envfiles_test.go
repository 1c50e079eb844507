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

package validation

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

func TestEnvFileMountsInTemplateOfStatefulSet(t *testing.T) {
	mounts := []core.VolumeMount{{Name: "config", MountPath: "/config"}}
	env := []core.EnvVar{{Name: "FROM_FILE", ValueFrom: &core.EnvVarSource{
		FileKeyRef: &core.FileKeySelector{VolumeName: "config", Path: "config.env", Key: "KEY"},
	}}}

	testCases := []struct {
		name string
		spec core.PodSpec
		opts corevalidation.PodValidationOptions
		want []string // fields
	}{
		{
			name: "an init container mounts, a container consumes a volume that the template does not have",
			spec: core.PodSpec{InitContainers: []core.Container{{VolumeMounts: mounts}}, Containers: []core.Container{{Env: env}}},
		},
		{
			name: "a container mounts what it consumes",
			spec: core.PodSpec{Containers: []core.Container{{Env: env, VolumeMounts: mounts}}},
			want: []string{"template.spec.containers[0].volumeMounts[0].name"},
		},
		{
			name: "a container mounts what it consumes, as it did before",
			spec: core.PodSpec{Containers: []core.Container{{Env: env, VolumeMounts: mounts}}},
			opts: corevalidation.PodValidationOptions{AllowEnvFileMounts: true},
		},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			template := &core.PodTemplateSpec{Spec: tc.spec}
			var got []string
			for _, err := range ValidatePodTemplateSpecForStatefulSet(template, labels.Everything(), field.NewPath("template"), tc.opts) {
				got = append(got, err.Field)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("want errors of fields %v, got: %v", tc.want, got)
			}
		})
	}
}
