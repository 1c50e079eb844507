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
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/utils/ptr"
)

// warningsForEnvFiles warns of each variable that needs an env file which nothing
// in the pod can have written by the time that its container starts: the volume
// is an emptyDir, only init containers may mount it, and an init container waits
// for those before it. Ephemeral containers are no part of a pod when it is
// created, and updates of pods do not warn.
func warningsForEnvFiles(podSpec *api.PodSpec, specPath *field.Path) []string {
	var warnings []string
	writable, readOnly := sets.New[string](), sets.New[string]() // volumes that init containers have mounted so far
	check := func(c *api.Container, containerPath *field.Path, writer string) {
		for i, env := range c.Env {
			if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil || ptr.Deref(env.ValueFrom.FileKeyRef.Optional, false) {
				continue
			}
			volume := env.ValueFrom.FileKeyRef.VolumeName
			if writable.Has(volume) {
				continue
			}
			how := ""
			if readOnly.Has(volume) {
				how = " other than read-only"
			}
			warnings = append(warnings, fmt.Sprintf("%s: no %s mounts volume %q%s, so nothing can have written the file; mount it in an %s, or set optional",
				containerPath.Child("env").Index(i).Child("valueFrom", "fileKeyRef"), writer, volume, how, writer))
		}
	}

	for i := range podSpec.InitContainers {
		c := &podSpec.InitContainers[i]
		check(c, specPath.Child("initContainers").Index(i), "earlier init container")
		for _, mount := range c.VolumeMounts {
			if mount.ReadOnly {
				readOnly.Insert(mount.Name)
			} else {
				writable.Insert(mount.Name)
			}
		}
	}
	for i := range podSpec.Containers {
		check(&podSpec.Containers[i], specPath.Child("containers").Index(i), "init container")
	}
	return warnings
}
