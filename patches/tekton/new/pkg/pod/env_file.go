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
