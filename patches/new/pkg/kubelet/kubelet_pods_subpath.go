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
	"fmt"
	"path"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	volumevalidation "k8s.io/kubernetes/pkg/volume/validation"
)

// expandSubPathExpr returns the subPath of a mount that has a subPathExpr. What
// is wrong with it makeMounts would find too, but show it, and a variable may
// hold a secret: the error has the expression, not what it expands to.
func expandSubPathExpr(mount v1.VolumeMount, env []kubecontainer.EnvVar) (string, error) {
	subPath, err := kubecontainer.ExpandContainerVolumeMounts(mount, env)
	if err != nil {
		return "", err
	}
	// Windows knows both kinds of absolute paths.
	if path.IsAbs(subPath) || filepath.IsAbs(subPath) {
		return "", fmt.Errorf("subPathExpr `%s` must not expand to an absolute path", mount.SubPathExpr)
	}
	if err := volumevalidation.ValidatePathNoBacksteps(subPath); err != nil {
		return "", fmt.Errorf("unable to provision subPathExpr `%s`: what it expands to %w", mount.SubPathExpr, err)
	}
	return subPath, nil
}
