package expansion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	e2enode "k8s.io/kubernetes/test/e2e/framework/node"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

const relaxed = "RelaxedEnvironmentVariableValidation"

// `kubectl podenv expand` says before a pod runs what its containers will see. Each entry of the
// table is a pod that runs: what podenv printed of it, and what the containers printed, must
// be the same.
var _ = describeIf(whateverTheGate, "kubectl podenv expand prints what the containers of a pod see,", differentialSpecs)

// The same pods where the kubelet leaves out keys that are no names.
var _ = describeIf(components.RequireGateOffInKubelets, "kubectl podenv expand prints what the containers of a pod see, with the gate off,", differentialSpecs)

func differentialSpecs(f *framework.Framework) {
	ginkgo.DescribeTable("with", func(ctx context.Context, pod func() *v1.Pod) {
		createSources(ctx, f, configMapData, secretData)
		expectExpanded(ctx, f, pod())
	},
		ginkgo.Entry("every form of a reference, in env, command and args", everyForm),
		ginkgo.Entry("variables that are declared too late, again, and of themselves", envOf(
			literal("BEFORE", "$(A)"), literal("A", "a"), literal("A", "$(A)$(A)"), literal("ITSELF", "$(ITSELF)"), literal("AFTER", "$(A)$(BEFORE)"))),
		ginkgo.Entry("keys of ConfigMaps and Secrets, some of which are no C identifiers", envFrom(
			nil, envFromConfigMap(""), envFromConfigMap("P_"), envFromSecret(""), envFromSecret("x.y-"))),
		ginkgo.Entry("references to keys that are no C identifiers", envFrom(
			[]v1.EnvVar{literal("REFERENCES", "$(1ST) $(a.b) $(P_1ST) $(A) $(NONE)")}, envFromConfigMap(""), envFromConfigMap("P_"))),
		ginkgo.Entry("env over envFrom, and over itself", envFrom(
			[]v1.EnvVar{literal("A", "$(A), of env"), literal("A", "$(A), again"), literal("B", "$(A) $(B)")}, envFromConfigMap(""), envFromSecret(""))),
		ginkgo.Entry("optional variables and sources that are not there", func() *v1.Pod {
			container := dumps(optional(fromConfigMap("NO_KEY", "none")), optional(fromSecret("NO_SECRET_KEY", "none")),
				optional(fromConfigMap("A", "none")), literal("REFERENCES", "$(NO_KEY) $(NO_SECRET_KEY) $(A)"),
				literal("EARLIER", "earlier"), optional(fromConfigMap("EARLIER", "none")))
			missing := envFromConfigMap("")
			missing.ConfigMapRef.Name, missing.ConfigMapRef.Optional = "none", ptr.To(true)
			container.EnvFrom = []v1.EnvFromSource{missing, envFromSecret("A_")}
			return pods.Once("optional", container, words([]string{"$(NO_KEY)", "$(EARLIER)"}, []string{"$(NO_KEY)$$(NO_KEY)"}, optional(fromConfigMap("NO_KEY", "none"))))
		}),
		ginkgo.Entry("values that look like references", func() *v1.Pod {
			return pods.Once("looks", dumps(literal("A", "a"), fromConfigMap("CONFIG_MAP", "LOOKS"), fromSecret("SECRET", "LOOKS"), literal("BOTH", "$(CONFIG_MAP)$(SECRET)")),
				words([]string{"$(CONFIG_MAP)"}, []string{"$$(CONFIG_MAP)", "$(SECRET)"}, fromConfigMap("CONFIG_MAP", "LOOKS"), fromSecret("SECRET", "LOOKS")))
		}),
		ginkgo.Entry("fields of the pod, spec.host among them", func() *v1.Pod {
			pod := pods.Once("fields", dumps(fromField("NAME", "metadata.name"), fromField("NAMESPACE", "metadata.namespace"),
				fromField("LABEL", "metadata.labels['app']"), fromField("NO_LABEL", "metadata.labels['none']"), fromField("ANNOTATION", "metadata.annotations['example.com/note']"),
				fromField("NODE", "spec.nodeName"), fromField("HOST", "spec.host"), fromField("ACCOUNT", "spec.serviceAccountName"),
				literal("ALL", "$(NAME) $(NAMESPACE) $(LABEL) $(NODE) $(HOST) $(ACCOUNT)")))
			pod.Labels, pod.Annotations = map[string]string{"app": "shop"}, map[string]string{"example.com/note": "a $(NAME) b"}
			return pod
		}),
		ginkgo.Entry("the deprecated field serviceAccount", func() *v1.Pod {
			pod := pods.Once("account", dumps(fromField("ACCOUNT", "spec.serviceAccountName")))
			pod.Spec.DeprecatedServiceAccount = "default"
			return pod
		}),
		ginkgo.Entry("resources", func() *v1.Pod {
			container := dumps(fromResource("CPU", "limits.cpu", ""), fromResource("MILLI", "requests.cpu", "1m"), fromResource("MEMORY", "limits.memory", "1Mi"),
				fromResource("BYTES", "requests.memory", ""), literal("ALL", "$(CPU) $(MILLI) $(MEMORY) $(BYTES)"))
			container.Resources = v1.ResourceRequirements{
				Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("100M")},
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("15m"), v1.ResourceMemory: resource.MustParse("20Mi")},
			}
			return pods.Once("resources", container)
		}),
		ginkgo.Entry("init containers and sidecars", func() *v1.Pod {
			init, side := dumps(literal("A", "$(B)"), literal("B", "of init")), dumps(literal("C", "c"), literal("D", "$(C)"))
			init.Name, side.Name, side.RestartPolicy, side.Args = "init", "side", ptr.To(v1.ContainerRestartPolicyAlways), []string{"serve"}
			pod := pods.Once("kinds", dumps(literal("A", "$(NAME)"), fromField("NAME", "metadata.name")))
			pod.Spec.InitContainers = []v1.Container{init, side}
			return pod
		}),
		ginkgo.Entry("the variables of the API server's service alone", func() *v1.Pod {
			return pods.Once("no-links", dumps(literal("A", "$(KUBERNETES_SERVICE_HOST) $(KUBERNETES_SERVICE_PORT)")))
		}),
	)

	f.It("and says that it cannot know a limit of 0, which stands for what the node has", func(ctx context.Context) {
		container := dumps(fromResource("CPU", "limits.cpu", ""), fromResource("REQUEST", "requests.cpu", "1m"))
		container.Resources = v1.ResourceRequirements{
			Limits:   v1.ResourceList{v1.ResourceCPU: resource.MustParse("0")},
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("0")},
		}
		expectExpanded(ctx, f, pods.Once("no-limit", container), "CPU")
	})

	f.It("with the services of its namespace, one of which has the name of the API server's", func(ctx context.Context) {
		_, node := createService(ctx, f, "db", "DB_SERVICE_HOST")
		createService(ctx, f, "kubernetes", "KUBERNETES_PORT_8080_TCP") // not a variable of the API server's
		pod := pods.Once("services", dumps(literal("BEFORE", "$(DB_SERVICE_HOST):$(DB_SERVICE_PORT)"), literal("DB_SERVICE_HOST", "own"),
			literal("AFTER", "$(DB_SERVICE_HOST) $(DB_PORT_8080_TCP_ADDR) $(KUBERNETES_SERVICE_PORT) $(KUBERNETES_SERVICE_PORT_HTTPS)")),
			words([]string{"$(DB_SERVICE_HOST)"}, []string{"$(KUBERNETES_PORT)"}))
		expectExpanded(ctx, f, onNodeWithServices(pod, node))
	})
}

var (
	configMapData = map[string]string{"A": "of a ConfigMap", "1ST": "first", "a.b": "dotted", "a-b": "dashed", "EMPTY": "", "LINES": "one\ntwo\n", "LOOKS": looksExpandable}
	secretData    = map[string]string{"B": "of a Secret", "2ND": "second", "LOOKS": looksExpandable}
)

// envOf is a pod of one container with env.
func envOf(env ...v1.EnvVar) func() *v1.Pod { return envFrom(env) }

// envFrom is a pod of one container with env, and sources of more.
func envFrom(env []v1.EnvVar, sources ...v1.EnvFromSource) func() *v1.Pod {
	return func() *v1.Pod {
		container := dumps(env...)
		container.EnvFrom = sources
		return pods.Once("env", container)
	}
}

func envFromConfigMap(prefix string) v1.EnvFromSource {
	return v1.EnvFromSource{Prefix: prefix, ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: source}}}
}

func envFromSecret(prefix string) v1.EnvFromSource {
	return v1.EnvFromSource{Prefix: prefix, SecretRef: &v1.SecretEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: source}}}
}

func fromResource(name, of, divisor string) v1.EnvVar {
	ref := &v1.ResourceFieldSelector{Resource: of}
	if divisor != "" {
		ref.Divisor = resource.MustParse(divisor)
	}
	return v1.EnvVar{Name: name, ValueFrom: &v1.EnvVarSource{ResourceFieldRef: ref}}
}

// words is the container prints, beside another one.
func words(command, args []string, env ...v1.EnvVar) v1.Container {
	container := prints(command, args, env...)
	container.Name = printer
	return container
}

// expanded is a container as `kubectl podenv expand -o json` prints it.
type expanded struct {
	Name          string
	Env           []struct{ Name, Value string }
	Command, Args []struct{ Value string }
}

// expectExpanded runs pod, and checks what its containers print against what podenv says.
// Of the variables called unknown podenv must say that it does not know their value, and of
// no others.
func expectExpanded(ctx context.Context, f *framework.Framework, pod *v1.Pod, unknown ...string) {
	ginkgo.GinkgoHelper()
	nodes.RequirePlugin()
	pods.Quick(&pod.Spec)
	if pod.Spec.NodeName == "" {
		node, err := e2enode.GetRandomReadySchedulableNode(ctx, f.ClientSet)
		framework.ExpectNoError(err)
		pod.Spec.NodeName = node.Name
	}
	want := podenvExpand(ctx, f, pod)
	pods.RunToEnd(ctx, f, pod)
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		at := slices.IndexFunc(want, func(e expanded) bool { return e.Name == c.Name })
		gomega.Expect(at).NotTo(gomega.Equal(-1), "kubectl podenv expand prints container %s", c.Name)
		if c.Image == images.Envdump {
			seen, said := withoutRuntimes(pods.Env(ctx, f, pod.Name, c.Name)), want[at].env()
			for _, name := range unknown {
				gomega.Expect(said).To(gomega.HaveKeyWithValue(name, "<unknown "+name+">"))
				gomega.Expect(seen).To(gomega.HaveKey(name))
				said[name] = seen[name]
			}
			gomega.Expect(seen).To(gomega.Equal(said), "container %s", c.Name)
			continue
		}
		gomega.Expect(pods.Log(ctx, f, pod.Name, c.Name)).To(gomega.Equal(want[at].printed()), "container %s", c.Name)
	}
}

// podenvExpand returns the containers of pod as podenv shows them before it runs.
func podenvExpand(ctx context.Context, f *framework.Framework, pod *v1.Pod) []expanded {
	ginkgo.GinkgoHelper()
	manifest := pod.DeepCopy()
	manifest.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	text, err := json.Marshal(manifest)
	framework.ExpectNoError(err)
	state, err := components.GateAt(ctx, f.ClientSet, relaxed, components.KubeletMetrics(pod.Spec.NodeName))
	framework.ExpectNoError(err)
	gate := relaxed + "=false"
	if state == featuregates.GateOn {
		gate = relaxed + "=true"
	}
	args := []string{"expand", "-f", "-", "-o", "json", "--show-secrets", "--feature-gates", gate,
		"--kubeconfig", framework.TestContext.KubeConfig, "--namespace", f.Namespace.Name}
	if framework.TestContext.KubeContext != "" {
		args = append(args, "--context", framework.TestContext.KubeContext)
	}
	cmd := nodes.Plugin(ctx, args...)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.Output()
	// It ends with 1 where a reference stays unexpanded.
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		framework.ExpectNoError(err, "kubectl podenv %s", strings.Join(args, " "))
	}
	var all []struct{ Containers []expanded }
	framework.ExpectNoError(json.Unmarshal(out, &all), "%s", out)
	gomega.Expect(all).To(gomega.HaveLen(1))
	return all[0].Containers
}

// withoutRuntimes is env without what the container runtime and the image set.
func withoutRuntimes(env map[string]string) map[string]string {
	for _, name := range []string{"PATH", "HOME", "HOSTNAME"} {
		delete(env, name)
	}
	return env
}

func (e expanded) env() map[string]string {
	env := map[string]string{}
	for _, v := range e.Env {
		env[v.Name] = v.Value
	}
	return env
}

// printed is what printf '%s\n' prints of the words behind it.
func (e expanded) printed() string {
	var out strings.Builder
	for _, word := range slices.Concat(e.Command, e.Args)[2:] {
		out.WriteString(word.Value + "\n")
	}
	return out.String()
}
