package envfiles

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

// gate is the feature gate under test.
const gate = "EnvFiles"

var specs = suite.For("EnvFiles", gate, "envfiles")

// The volume that the specs' env files are in, where writers mount it, and the
// container that consumes the files.
const (
	volume   = "config"
	mount    = "/data"
	consumer = "use-envfile"
)

// describe declares specs that need the gate on; they are skipped, and say so, on a
// cluster where it is off.
func describe(theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return describeIf(components.RequireGate, theme, body, labels...)
}

// ownAPI is the precondition of specs of what this branch decides where the API is its own.
func ownAPI(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if components.HasUpstreamAPI(gate) {
		ginkgo.Skip("the API of " + gate + " is upstream's in the release of the API server")
	}
}

// upstreamAPI is the precondition of specs of what upstream decides otherwise.
func upstreamAPI(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if !components.HasUpstreamAPI(gate) {
		ginkgo.Skip("the API of " + gate + " is this branch's in the release of the API server")
	}
}

// plainForm is the precondition of specs of env files of the form VAR=VALUE.
func plainForm(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if envfile.Quoted() {
		ginkgo.Skip("kubelets of the release of the API server read env files of the form VAR='VALUE'")
	}
}

// quotedForm is the precondition of specs of env files of the form VAR='VALUE'.
func quotedForm(ctx context.Context, gate string) {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if !envfile.Quoted() {
		ginkgo.Skip("kubelets of the release of the API server read env files of the form VAR=VALUE")
	}
}

// describeIf declares specs that run where precondition does not skip them.
func describeIf(precondition func(context.Context, string), theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return specs.Describe(precondition, theme, body, labels...)
}

// newPod is a pod that runs init, then containers, once, and has an emptyDir for env
// files.
func newPod(name string, init []v1.Container, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			RestartPolicy:  v1.RestartPolicyNever,
			InitContainers: init,
			Containers:     containers,
			Volumes:        []v1.Volume{pods.EmptyDir(volume)},
		},
	}
}

// unscheduled keeps pod from ever running, for specs of the API alone.
func unscheduled(pod *v1.Pod) *v1.Pod {
	pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "podenv.dev/never"}}
	return pod
}

// from is a variable taken from the key of an env file.
func from(name, path, key string) v1.EnvVar {
	return envfile.Var(name, volume, path, key, nil)
}

// optional is variable with optional: true.
func optional(variable v1.EnvVar) v1.EnvVar {
	variable.ValueFrom.FileKeyRef.Optional = ptr.To(true)
	return variable
}

// runs is an init container that runs a shell script with the volume mounted.
func runs(name, script string) v1.Container {
	return v1.Container{
		Name: name, Image: images.Busybox, ImagePullPolicy: v1.PullNever,
		Command:      []string{"sh", "-ec", script},
		VolumeMounts: []v1.VolumeMount{{Name: volume, MountPath: mount}},
	}
}

// writes is an init container that writes content, of the form VAR=VALUE, to the file at
// path of the volume, in the form that the kubelets read.
func writes(path, content string) []v1.Container {
	ginkgo.GinkgoHelper()
	return writesBytes(path, envfile.Text(content))
}

// writesBytes is writes for content that stays as it is.
func writesBytes(path, content string) []v1.Container {
	writer := runs("setup-envfile", `printf %s "$CONTENT" > `+mount+"/"+path)
	// The API server would expand $(NAME) and take $$ for $.
	writer.Env = []v1.EnvVar{{Name: "CONTENT", Value: strings.ReplaceAll(content, "$", "$$")}}
	return []v1.Container{writer}
}

// mountsOnly is an init container of a pod that never runs: it could write to the volume.
func mountsOnly() []v1.Container { return []v1.Container{runs("setup-envfile", "true")} }

// echo is a shell command that prints a definition, NAME=VALUE, in the form that the kubelets
// read. The value may have variables of the shell.
func echo(definition string) string {
	ginkgo.GinkgoHelper()
	return `echo "` + envfile.Text(definition) + `"`
}

// printf is echo for lines with the escapes and directives of printf, and their arguments.
func printf(lines string, args ...string) string {
	ginkgo.GinkgoHelper()
	return `printf "` + envfile.Text(lines) + `" ` + strings.Join(args, " ")
}

// sidecar is a restartable init container with the volume mounted, through which a
// spec writes files with shell. It first runs script.
func sidecar(script string) v1.Container {
	container := runs("sidecar", script+"\ntouch /ready; exec sleep 3600")
	container.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	container.StartupProbe = &v1.Probe{
		ProbeHandler:  v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"test", "-f", "/ready"}}},
		PeriodSeconds: 1, FailureThreshold: 60,
	}
	return container
}

// shell runs script in the pod's sidecar.
func shell(ctx context.Context, f *framework.Framework, pod, script string) {
	ginkgo.GinkgoHelper()
	pods.Exec(ctx, f, pod, "sidecar", "", "sh", "-ec", script)
}

// replace gives the file at path of the volume one definition, at once, through the
// pod's sidecar, and lets the kubelet know that it is worth a look.
func replace(ctx context.Context, f *framework.Framework, pod, path, definition string) {
	ginkgo.GinkgoHelper()
	shell(ctx, f, pod, fmt.Sprintf("%s > %s/.new && rm -rf %[2]s/%[3]s && mv %[2]s/.new %[2]s/%[3]s", echo(definition), mount, path))
	pods.Nudge(ctx, f, pod)
}
