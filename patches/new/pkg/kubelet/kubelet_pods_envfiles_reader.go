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
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/envfile"
	"k8s.io/kubernetes/pkg/securitycontext"
)

// envFileReader returns the credentials of a container's first process, as far
// as they are known on the node: an env file must be one that this process
// could read itself (KEP-3721, row 7 of its failure table).
//
// They are those that the runtime is asked for. What it finds in the image's
// own files is not known: the UID of a user name, the groups of /etc/group, and
// the primary group, unless the pod sets runAsGroup. It is not the group that
// the image's USER names, which the CRI does not pass on.
func (kl *Kubelet) envFileReader(ctx context.Context, pod *v1.Pod, container *v1.Container) (*envfile.Credentials, error) {
	effective := securitycontext.DetermineEffectiveSecurityContext(pod, container)
	reader := &envfile.Credentials{
		UID:           effective.RunAsUser,
		GID:           effective.RunAsGroup,
		Groups:        kl.GetExtraSupplementalGroupsForPod(pod),
		UserNamespace: pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers,
	}
	// Kubelets before v1.33 have no such setting.
	if namespaces, ok := interface{}(kl).(interface{ GetUserNamespacesIDsPerPod() uint32 }); ok && reader.UserNamespace {
		reader.IDsPerPod = int64(namespaces.GetUserNamespacesIDsPerPod())
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil {
			reader.Groups = append(reader.Groups, *sc.FSGroup)
		}
		reader.Groups = append(reader.Groups, sc.SupplementalGroups...)
	}
	if images, ok := kl.containerRuntime.(kubecontainer.ImageUserGetter); ok && reader.UID == nil {
		uid, err := images.GetImageUID(ctx, container.Image)
		if err != nil {
			return nil, fmt.Errorf("couldn't get the user of image %q: %w", container.Image, err)
		}
		reader.UID = uid
	}
	return reader, nil
}
