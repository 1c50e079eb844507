package expansion

import (
	"context"
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

// gate is the feature gate under test; envFiles is the one of fileKeyRef.
const gate, envFiles = "VariableExpansionEvents", "EnvFiles"

var specs = suite.For("Variable expansion", gate, "expansion")

// consumer is the container whose variables a spec is about, and source the name of a
// spec's ConfigMap, and of its Secret.
const consumer, source = "app", "source"

// describe declares specs that need the gate on; they are skipped, and say so, on a
// cluster where it is off.
func describe(theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return describeIf(components.RequireGateInKubelets, theme, body, labels...)
}

// describeIf declares specs that run where precondition does not skip them.
func describeIf(precondition func(context.Context, string), theme string, body func(f *framework.Framework), labels ...ginkgo.Labels) bool {
	ginkgo.GinkgoHelper()
	return specs.Describe(precondition, theme, body, labels...)
}

// whateverTheGate is the precondition of specs about results, which have no gate.
func whateverTheGate(context.Context, string) {}

// dumps is a container without a shell that prints its environment.
func dumps(env ...v1.EnvVar) v1.Container {
	return pods.Dumps(consumer, env...)
}

// prints is a container that prints each of words, and then each of args, on a line
// of its own. The words are in its command.
func prints(words, args []string, env ...v1.EnvVar) v1.Container {
	return v1.Container{
		Name: consumer, Image: images.Busybox, ImagePullPolicy: v1.PullNever, Env: env,
		Command: append([]string{"printf", `%s\n`}, words...), Args: args,
	}
}

func literal(name, value string) v1.EnvVar { return v1.EnvVar{Name: name, Value: value} }

func fromField(name, path string) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: path}}}
}

func fromConfigMap(name, key string) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{ConfigMapKeyRef: &v1.ConfigMapKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: source}, Key: key}}}
}

func fromSecret(name, key string) v1.EnvVar {
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
		LocalObjectReference: v1.LocalObjectReference{Name: source}, Key: key}}}
}

// fromFile is a variable taken from a key of the file that withFile writes.
func fromFile(name, key string) v1.EnvVar {
	return envfile.Var(name, "config", "config.env", key, nil)
}

// optional is variable with optional: true.
func optional(variable v1.EnvVar) v1.EnvVar {
	switch source := variable.ValueFrom; {
	case source.ConfigMapKeyRef != nil:
		source.ConfigMapKeyRef.Optional = ptr.To(true)
	case source.SecretKeyRef != nil:
		source.SecretKeyRef.Optional = ptr.To(true)
	case source.FileKeyRef != nil:
		source.FileKeyRef.Optional = ptr.To(true)
	}
	return variable
}

// withFile gives pod an emptyDir whose env file has content, of the form VAR=VALUE, in the
// form that the kubelets read.
func withFile(pod *v1.Pod, content string) *v1.Pod {
	ginkgo.GinkgoHelper()
	content = envfile.Text(content)
	pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("config")}
	pod.Spec.InitContainers = []v1.Container{{
		Name: "setup-envfile", Image: images.Busybox, ImagePullPolicy: v1.PullNever,
		Command: []string{"sh", "-ec", `printf %s "$CONTENT" > /data/config.env`},
		// The kubelet would expand $(NAME) and take $$ for $.
		Env:          []v1.EnvVar{literal("CONTENT", strings.ReplaceAll(content, "$", "$$"))},
		VolumeMounts: []v1.VolumeMount{{Name: "config", MountPath: "/data"}},
	}}
	return pod
}

// createSources creates a ConfigMap and a Secret, both with the name source.
func createSources(ctx context.Context, f *framework.Framework, configMap, secret map[string]string) {
	ginkgo.GinkgoHelper()
	meta := metav1.ObjectMeta{Name: source}
	_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{ObjectMeta: meta, Data: configMap}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	_, err = f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, &v1.Secret{ObjectMeta: meta, StringData: secret}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}
