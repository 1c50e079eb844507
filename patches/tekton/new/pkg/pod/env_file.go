/*
Copyright 2026 The Tekton Authors

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
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IsWaitingForEnvFile reports whether a container waits for a file that one of its variables comes
// from (fileKeyRef, KEP-3721): the file may be missing, have no such key or be half-written. The
// kubelet tries again and starts the container once the file is right.
func IsWaitingForEnvFile(waiting corev1.ContainerStateWaiting) bool {
	return waiting.Reason == ReasonCreateContainerConfigError &&
		(strings.Contains(waiting.Message, "env file") || strings.Contains(waiting.Message, "not found in file"))
}
