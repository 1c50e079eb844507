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

package kuberuntime

import (
	"context"

	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

var _ kubecontainer.ImageUserGetter = &kubeGenericRuntimeManager{}

// GetImageUID returns the UID that a container of the image is created with if
// it sets no runAsUser, or nil if the image has a user name in its place.
func (m *kubeGenericRuntimeManager) GetImageUID(ctx context.Context, image string) (*int64, error) {
	uid, _, err := m.getImageUser(ctx, image)
	return uid, err
}
