package kubelet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
)

func TestStatusShowsTheCommandAsWritten(t *testing.T) {
	const message = `runc create failed: exec: "s3cr3t": executable file not found in $PATH`
	const hidden = `the container runtime could not run %s; its message is not shown, because it may have the value of a variable`
	secret := []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{Key: "key"}}}}
	fromSecret := []v1.EnvFromSource{{Prefix: "FROM_", SecretRef: &v1.SecretEnvSource{}}}
	bomb := []v1.EnvVar{{Name: "B", Value: "0123456789"}}
	for i := 0; i < 30; i++ {
		bomb = append(bomb, v1.EnvVar{Name: "B", Value: strings.Repeat("$(B)", 10)})
	}
	many := []v1.EnvVar{{Name: "B", Value: strings.Repeat("x", 100_000)}}
	for i := 0; i < 100; i++ {
		many = append(many, v1.EnvVar{Name: fmt.Sprint("V", i), Value: "$(B)"})
	}
	testCases := []struct {
		name          string
		env           []v1.EnvVar
		envFrom       []v1.EnvFromSource
		limits        v1.ResourceList
		command, args []string
		started       time.Time
		want          string
	}{
		{name: "a command without a reference", command: []string{"s3cr3t"}, want: message},
		{name: "a container that ran wrote its own message", env: secret, command: []string{"$(A)"}, started: time.Unix(1700000000, 0), want: message},
		{name: "a command with a reference", env: secret, command: []string{"$(A)"}, want: fmt.Sprintf(hidden, `"$(A)"`)},
		{name: "args with a reference", env: secret, command: []string{"/bin/sh"}, args: []string{"$(A)"}, want: fmt.Sprintf(hidden, `"/bin/sh"`)},
		{name: "args with a reference, and the image's command", env: secret, args: []string{"$(A)"}, want: fmt.Sprintf(hidden, "the container")},
		{name: "a reference to what envFrom may bring", envFrom: fromSecret, command: []string{"$(FROM_A)"}, want: fmt.Sprintf(hidden, `"$(FROM_A)"`)},
		{name: "a reference to what a device plugin may set", limits: v1.ResourceList{"example.com/device": resource.MustParse("1")}, command: []string{"$(A)"}, want: fmt.Sprintf(hidden, `"$(A)"`)},
		{name: "a variable that is not declared, beside a limit that is no device's", limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}, command: []string{"$(A)"}, want: message},
		{name: "a reference to a service", command: []string{"$(DB_SERVICE_HOST)"}, want: fmt.Sprintf(hidden, `"$(DB_SERVICE_HOST)"`)},
		{name: "a reference to a port of a service", command: []string{"$(DB_PORT_80_TCP)"}, want: fmt.Sprintf(hidden, `"$(DB_PORT_80_TCP)"`)},
		{name: "a reference through another variable", env: append(secret, v1.EnvVar{Name: "B", Value: "/$(A)"}), command: []string{"$(B)"}, want: fmt.Sprintf(hidden, `"$(B)"`)},
		{name: "a value that explodes", env: bomb, command: []string{"$(B)"}, want: fmt.Sprintf(hidden, `"$(B)"`)},

		{name: "more values than a process can be given", env: many, command: []string{"$(V99)"}, want: fmt.Sprintf(hidden, `"$(V99)"`)},

		{name: "the script of a shell", command: []string{"/nope", "-c", "echo $(date)"}, want: message},
		{name: "the script of a shell beside a secret that it does not refer to", env: secret, envFrom: fromSecret, command: []string{"/nope", "-c", "echo $(date)"}, want: message},
		{name: "the script of a shell that refers to no key that envFrom may bring", envFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{}}},
			command: []string{"/nope", "-c", "echo $(date +%s)"}, want: message},
		{name: "the script of a shell that refers to what may be a key of envFrom", envFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{}}},
			command: []string{"/nope", "-c", "echo $(date)"}, want: fmt.Sprintf(hidden, `"/nope"`)},
		{name: "an escaped reference", env: secret, args: []string{"$$(A)"}, want: message},
		{name: "a variable that is not declared", command: []string{"$(A)"}, want: message},
		{name: "a value in the pod", env: []v1.EnvVar{{Name: "A", Value: "s3c"}, {Name: "B", Value: "$(A)r3t"}}, command: []string{"$(B)"},
			want: `runc create failed: exec: "$(B)": executable file not found in $PATH`},
		{name: "a value in the pod, of a name that a service may have", env: []v1.EnvVar{{Name: "DB_PORT", Value: "s3cr3t"}}, command: []string{"$(DB_PORT)"},
			want: `runc create failed: exec: "$(DB_PORT)": executable file not found in $PATH`},
		{name: "the longest value", env: []v1.EnvVar{{Name: "B", Value: strings.Repeat("x", 128<<10)}}, command: []string{"$(B)"}, want: message},
		{name: "a value in the pod over one from elsewhere", env: append(secret, v1.EnvVar{Name: "A", Value: "s3cr3t"}), command: []string{"$(A)"},
			want: `runc create failed: exec: "$(A)": executable file not found in $PATH`},
	}
	for _, tc := range testCases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.started.IsZero() {
				tc.started = time.Unix(0, 0)
			}
			pod := &v1.Pod{Spec: v1.PodSpec{
				InitContainers: []v1.Container{{Name: "setup", Command: []string{"$(B)"}}},
				Containers: []v1.Container{{Name: "main", Command: tc.command, Args: tc.args, Env: tc.env, EnvFrom: tc.envFrom,
					Resources: v1.ResourceRequirements{Limits: tc.limits}}},
			}}
			status := &kubecontainer.PodStatus{ContainerStatuses: []*kubecontainer.Status{{
				Name: "main", State: kubecontainer.ContainerStateExited, Reason: "StartError", ExitCode: 128, Message: message, StartedAt: tc.started,
			}}}
			got := messageAsWritten(pod, status.ContainerStatuses[0], nil)
			assert.Equal(t, tc.want, got)
		})
	}
}

// What the kubelet has said of a container stays, also after a restart of the kubelet.
func TestStatusKeepsTheMessageOfAContainer(t *testing.T) {
	const shown = `exec: "$(A)": not found`
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "main", Command: []string{"$(A)"}, EnvFrom: []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{}}},
	}}}}
	status := &kubecontainer.Status{ID: kubecontainer.ContainerID{Type: "containerd", ID: "1"}, Name: "main", Message: `exec: "s3cr3t": not found`, StartedAt: time.Unix(0, 0)}
	ended := func(id string) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: id, Message: shown}}
	}

	assert.Equal(t, shown, messageAsWritten(pod, status, &v1.ContainerStatus{State: ended("containerd://1")}))
	assert.Equal(t, shown, messageAsWritten(pod, status, &v1.ContainerStatus{LastTerminationState: ended("containerd://1")}))
	of2 := messageAsWritten(pod, status, &v1.ContainerStatus{State: ended("containerd://2"), LastTerminationState: ended("containerd://3")})
	assert.NotEqual(t, shown, of2)
	assert.NotContains(t, of2, "s3cr3t")
	status.Message = ""
	assert.Empty(t, messageAsWritten(pod, status, nil), "where the runtime says nothing")
}
