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

package kubelet

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
)

// What takes other arguments in other releases is called here alone.

// mountsError returns why the mounts of the container cannot be made.
func mountsError(t *testing.T, container *v1.Container, volumes kubecontainer.VolumeMap, env []kubecontainer.EnvVar) error {
	t.Helper()
	_, _, err := makeMounts(klog.Background(), &v1.Pod{}, t.TempDir(), container, "", "", nil, volumes, hostutil.NewFakeHostUtil(nil), &subpath.FakeSubpath{}, env, false, nil)
	return err
}
