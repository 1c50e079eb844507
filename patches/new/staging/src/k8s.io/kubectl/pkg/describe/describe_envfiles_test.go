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

package describe

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestDescribeContainerEnvVarsFromFiles(t *testing.T) {
	container := corev1.Container{Env: []corev1.EnvVar{
		{Name: "REQUIRED", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "config", Path: "dir/config.env", Key: "KEY",
		}}},
		{Name: "IF_THERE", ValueFrom: &corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{
			VolumeName: "config", Path: "other.env", Key: "OTHER", Optional: ptr.To(true),
		}}},
	}}
	out := &bytes.Buffer{}
	describeContainerEnvVars(container, nil, NewPrefixWriter(out))

	for _, want := range []string{
		"REQUIRED:\t<set to the key 'KEY' of file 'dir/config.env' in volume 'config'>\tOptional: false\n",
		"IF_THERE:\t<set to the key 'OTHER' of file 'other.env' in volume 'config'>\tOptional: true\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}
