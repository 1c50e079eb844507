package kubelet

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// messageAsWritten returns the message of a container that has ended. That of a
// container that never ran is the runtime's, and has the word of the command
// that could not be run. Where a variable was expanded in such a word, the word
// stands as the pod has it. The kubelet that tried to start the container knows
// the words, and old, the container's status in the API, may have the message since.
// Otherwise the message is not shown if the pod does not say what a word was expanded to.
func messageAsWritten(pod *v1.Pod, status *kubecontainer.Status, old *v1.ContainerStatus) string {
	if status.Message == "" || status.StartedAt.Unix() > 0 {
		return status.Message
	}
	if message, ok := kuberuntime.MessageOfStart(status.ID.ID, status.Message); ok {
		return message
	}
	if old != nil {
		for _, state := range []v1.ContainerState{old.State, old.LastTerminationState} {
			if state.Terminated != nil && state.Terminated.ContainerID == status.ID.String() {
				return state.Terminated.Message
			}
		}
	}
	message := status.Message
	podutil.VisitContainers(&pod.Spec, podutil.AllContainers, func(c *v1.Container, _ podutil.ContainerType) bool {
		if c.Name != status.Name {
			return true
		}
		words := append(append([]string{}, c.Command...), c.Args...)
		expanded := make([]string, len(words))
		variables := newPlainVariables(c)
		for i, word := range words {
			var known bool
			if expanded[i], known = variables.expand(word); !known {
				message = kuberuntime.MessageNotShown
				if len(c.Command) > 0 {
					message = strings.Replace(message, "the container;", fmt.Sprintf("%q;", c.Command[0]), 1)
				}
				return false
			}
		}
		message = kuberuntime.MessageWithWordsAsWritten(message, words, expanded)
		return false
	})
	return message
}

// plainVariables are those variables of a container that have their value in the
// pod itself.
type plainVariables struct {
	values map[string]string
	// elsewhere are variables with a value from elsewhere, and prefixes those of
	// the names that envFrom brings.
	elsewhere map[string]bool
	prefixes  []string
	// devices says that a device plugin may set any variable.
	devices bool
}

func newPlainVariables(c *v1.Container) *plainVariables {
	p := &plainVariables{values: map[string]string{}, elsewhere: map[string]bool{}}
	for _, from := range c.EnvFrom {
		p.prefixes = append(p.prefixes, from.Prefix)
	}
	for name := range c.Resources.Limits {
		if strings.Contains(string(name), "/") {
			p.devices = true
		}
	}
	size := 0 // of all values
	for _, env := range c.Env {
		var value string
		known := false
		if env.ValueFrom == nil && size <= maxPlainValues {
			value, known = p.expand(env.Value)
			size += len(value)
		}
		if known {
			p.values[env.Name] = value
		} else {
			delete(p.values, env.Name)
			p.elsewhere[env.Name] = true
		}
	}
	return p
}

// maxPlainValue and maxPlainValues are the kernel's limits, in bytes, for one string
// of an environment or a command and for all of them (execve(2), "Limits").
const (
	maxPlainValue  = 128 << 10
	maxPlainValues = 6 << 20
)

// expand returns text with its references expanded, or false if one of them may
// be to a variable whose value is elsewhere.
func (p *plainVariables) expand(text string) (expanded string, known bool) {
	known = true
	size := 0
	expanded = forked.Expand(text, func(name string) string {
		value, plain := p.values[name]
		size += len(value)
		switch {
		case size > maxPlainValue, !plain && p.mayHave(name):
			known = false
			return ""
		case plain:
			return value
		}
		return "$(" + name + ")"
	})
	return expanded, known
}

func (p *plainVariables) mayHave(name string) bool {
	for _, prefix := range p.prefixes {
		// What follows is a key of a ConfigMap or Secret. Which keys those had when the
		// container started is not known any more.
		if key, ok := strings.CutPrefix(name, prefix); ok && len(validation.IsConfigMapKey(key)) == 0 {
			return true
		}
	}
	// As the variables of services are called.
	service := strings.Contains(name, "_SERVICE_") || strings.Contains(name, "_PORT")
	return p.elsewhere[name] || p.devices || service
}
