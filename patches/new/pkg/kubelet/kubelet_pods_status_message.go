package kubelet

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

// messageAsWritten returns the message of a container that has ended. That of a
// container that never ran is the runtime's, and has the word of the command
// that could not be run. If the pod has a reference to a variable there, what it
// was expanded to is not shown: the kubelet may have been restarted since and
// does not know it. The event of the start has the runtime's message.
func messageAsWritten(pod *v1.Pod, status *kubecontainer.Status) string {
	if status.Message == "" || status.StartedAt.Unix() > 0 {
		return status.Message
	}
	message := status.Message
	podutil.VisitContainers(&pod.Spec, podutil.AllContainers, func(c *v1.Container, _ podutil.ContainerType) bool {
		if c.Name != status.Name {
			return true
		}
		words := append(append([]string{}, c.Command...), c.Args...)
		if strings.Contains(strings.Join(words, " "), "$(") {
			message = fmt.Sprintf("the container runtime could not run %q; its message is not shown, because it may have the value of a variable", words[0])
		}
		return false
	})
	return message
}
