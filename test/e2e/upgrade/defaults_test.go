package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

// With its gates at the release's defaults, a patched release does what the stock release
// does. A fix without a gate may turn an error into a success, add a warning, or say less
// of a value in a message: docs/features.md lists those, and changed has them here.
var _ = framework.SIGDescribe("node")("Gates at their defaults", framework.WithFeature(feature),
	framework.WithSerial(), framework.WithDisruptive(), func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("defaults")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("a patched release does what the stock release does", func(ctx context.Context) {
			states, err := featuregates.In(nodes.Options.Minor)
			framework.ExpectNoError(err)
			components.RequireGate(ctx, relaxed)
			makeSpecialConfigMap(ctx, f)
			makeSpecialTemplates(ctx, f)
			server, node := controlPlane(ctx, f), worker(ctx, f)
			got := map[string]map[string]string{}
			for _, build := range []string{stock, patched} {
				for component, on := range map[string]nodes.Node{apiServer: server, kubelet: node} {
					var gates []string
					for _, s := range states {
						switch {
						case !slices.Contains(s.Components, component):
						case build == patched && !s.Spec.LockToDefault:
							gates = append(gates, fmt.Sprintf("%s=%t", s.Name, s.Spec.Default))
						case build == stock && !s.Carried:
							gates = append(gates, string(s.Name)+"-")
						}
					}
					on.Swap(ctx, component, build+":"+nodes.Options.Minor, gates...)
				}
				got[build] = map[string]string{}
				for name, outcome := range defaults {
					ginkgo.By(build + ": " + name)
					got[build][name] = outcome(ctx, f, string(node), fmt.Sprintf("%s-%d", build, len(got[build])))
				}
			}
			var differences []string
			for name := range defaults {
				want := got[stock][name]
				if change, ok := changed[name]; ok {
					want = change(want, got[stock])
				}
				if got[patched][name] != want {
					differences = append(differences, fmt.Sprintf("%s: want\n%s\ngot\n%s", name, want, got[patched][name]))
				}
			}
			gomega.Expect(strings.Join(differences, "\n")).To(gomega.BeEmpty(), "what a patched release does otherwise")
		})
	})

// changed is what the fixes that have no gate make of what a stock release does: of one
// outcome, and all of them.
var changed = map[string]func(stock string, all map[string]string) string{
	"a StatefulSet whose template mounts a volume that only admission can add": func(stock string, _ map[string]string) string {
		if components.AtLeast("v1.34") { // which refuses it
			return stock
		}
		return stock + warned(`spec.template.spec.containers[0].volumeMounts[0].name: no pod can have this as it stands: Not found: "added"`)
	},
	"a StatefulSet whose pods have a special name": func(stock string, all map[string]string) string {
		_, rule, refused := strings.Cut(all["a pod with a special name"], `"`+special+`": `)
		if !refused {
			return stock
		}
		return stock + warned(fmt.Sprintf("spec.template.spec.containers[0].env[0].name: no pod can have this as it stands: Invalid value: %q: %s", special, rule))
	},
	"a variable from an env file": withoutTheOptional,
	"a static pod with a variable from an env file, which the container can write": withoutTheOptional,
	"an update of a ReplicationController": func(stock string, _ map[string]string) string {
		text := `spec.template.spec.containers[0].env[1]: hides previous definition of "A"`
		if components.AtLeast("v1.30") {
			text += ", which may be dropped when using apply"
		}
		return stock + warned(text)
	},
	"a command that is the value of a variable": func(stock string, _ map[string]string) string {
		return strings.ReplaceAll(stock, nope, "$(A)")
	},
	"a variable that no process can be given": func(string, map[string]string) string {
		return pods.ConfigError + ` cannot expand variable "B": the result is longer than a process can be given (131071 bytes, with the name of a variable)`
	},
	"a subPathExpr that expands to an absolute path": func(string, map[string]string) string {
		return pods.ConfigError + " subPathExpr `$(A)` must not expand to an absolute path"
	},
	"a static pod with a special name": func(stock string, all map[string]string) string {
		if throughAPI := all["a pod with a special name"]; strings.HasPrefix(throughAPI, "Completed") {
			return throughAPI
		}
		return stock
	},
	"a static pod with a name that no variable can have": func(_ string, all map[string]string) string {
		_, rule, _ := strings.Cut(all["a pod with a name that no variable can have"], `"a=b": `)
		return `invalid pod: [spec.containers[0].env[0].name: Invalid value: \"a=b\": ` + rule + `]"`
	},
	// Up to v1.31 stock looks at the new name alone: the fix lets special ones follow each other.
	"an update to a name that no variable can have": func(stock string, _ map[string]string) string {
		before, _, _ := strings.Cut(stock, `"a=b": `)
		return before + `"a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`
	},
	"an update of what has a special name":      func(string, map[string]string) string { return "<nil>" },
	"another special name for the one there is": func(string, map[string]string) string { return "<nil>" },
}

// withoutTheOptional is what a variable from a file that is missing is with the gate on, as it is by default from
// v1.35 on, if it is optional: none. Stock does not start the container.
func withoutTheOptional(stock string, all map[string]string) string {
	if components.AtLeast("v1.35") {
		return all["no variable"]
	}
	return stock
}

const nope = "/nope" // no program of the image

// defaults are what a release is asked to do. An outcome is text without what differs from
// one object to the next.
var defaults = map[string]func(ctx context.Context, f *framework.Framework, node, name string) string{
	"a StatefulSet whose template mounts a volume that only admission can add": func(ctx context.Context, f *framework.Framework, _, name string) string {
		return statefulSet(ctx, f, name, func(c *v1.Container) { c.VolumeMounts = []v1.VolumeMount{{Name: "added", MountPath: "/added"}} })
	},
	"a StatefulSet whose pods have a special name": func(ctx context.Context, f *framework.Framework, _, name string) string {
		return statefulSet(ctx, f, name, func(c *v1.Container) { c.Env = []v1.EnvVar{{Name: special, Value: "1"}} })
	},
	"no variable": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, pods.Once(name, pods.Dumps(dumps)))
	},
	"a pod with a special name": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, pods.Once(name, pods.Dumps(dumps, v1.EnvVar{Name: special, Value: "1"})))
	},
	"a pod with a name that no variable can have": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, pods.Once(name, pods.Dumps(dumps, v1.EnvVar{Name: "a=b", Value: "1"})))
	},
	"keys of a ConfigMap that are no identifiers": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps)
		container.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: configMap}}}}
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"references of every form": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps, v1.EnvVar{Name: "A", Value: "a"},
			v1.EnvVar{Name: "B", Value: "$(A) $$(A) $$$(A) $(UNKNOWN) $(date +%s) $( $A $"}, v1.EnvVar{Name: "C", Value: "$(B)$(C)$(D)"}, v1.EnvVar{Name: "D"})
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"a command that does not exist, with a shell's script": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps)
		container.Command = []string{nope, "-c", "echo $(date) $$(A)"}
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"the same, where envFrom may bring what the script refers to": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps)
		container.EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: configMap}}}}
		container.Command = []string{nope, "-c", "echo $(date)"}
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"a command that is the value of a variable": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps, v1.EnvVar{Name: "A", Value: nope})
		container.Command = []string{"$(A)"}
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"a variable that no process can be given": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps, v1.EnvVar{Name: "A", Value: strings.Repeat("a", 64<<10)}, v1.EnvVar{Name: "B", Value: "$(A)$(A)"})
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"a variable from an env file": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, withFileKeyRef(name))
	},
	"a static pod with a variable from an env file, which the container can write": func(ctx context.Context, f *framework.Framework, node, name string) string {
		if components.AtLeast("v1.34") && !components.AtLeast("v1.35") { // an API server with the gate off takes no mirror pod with the field
			return ""
		}
		pod := withFileKeyRef(name)
		pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		return ranStatically(ctx, f, node, pod)
	},
	"a static pod with an env file beside another source": func(ctx context.Context, f *framework.Framework, node, name string) string {
		pod := withFileKeyRef(name)
		pod.Spec.Containers[0].Env[0].ValueFrom.FieldRef = &v1.ObjectFieldSelector{FieldPath: "metadata.namespace"}
		return ranStatically(ctx, f, node, pod)
	},
	"an update of a ReplicationController": func(ctx context.Context, f *framework.Framework, _, name string) string {
		labels := map[string]string{"app": name}
		template := &v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{pods.Dumps(dumps)}}}
		rc := &v1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ReplicationControllerSpec{Replicas: ptr.To[int32](0), Selector: labels, Template: template}}
		return warnedOf(f, name, func(client kubernetes.Interface) error {
			rcs := client.CoreV1().ReplicationControllers(f.Namespace.Name)
			_, err := rcs.Create(ctx, rc, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			const twice = `[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]`
			_, err = rcs.Patch(ctx, name, types.JSONPatchType, []byte(twice), metav1.PatchOptions{})
			return err
		})
	},
	"a shell's script in args": func(ctx context.Context, f *framework.Framework, node, name string) string {
		container := pods.Dumps(dumps)
		container.Args = []string{"$$(A) $(date)"}
		return ran(ctx, f, node, pods.Once(name, container))
	},
	"a subPathExpr": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, withSubPathExpr(name, "here"))
	},
	"a subPathExpr that expands to an absolute path": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ran(ctx, f, node, withSubPathExpr(name, "/elsewhere"))
	},
	"a static pod": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ranStatically(ctx, f, node, pods.Once(name, pods.Dumps(dumps, v1.EnvVar{Name: "A", Value: "a"}, v1.EnvVar{Name: "B", Value: "$(A) $$(A) $(UNKNOWN)"})))
	},
	"a static pod with a special name": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ranStatically(ctx, f, node, pods.Once(name, pods.Dumps(dumps, v1.EnvVar{Name: special, Value: "1"})))
	},
	"a static pod with a name that no variable can have": func(ctx context.Context, f *framework.Framework, node, name string) string {
		return ranStatically(ctx, f, node, pods.Once(name, pods.Dumps(dumps, v1.EnvVar{Name: "a=b", Value: "1"})))
	},
	"an update of what has a special name": func(ctx context.Context, f *framework.Framework, _, name string) string {
		return updated(ctx, f, name, `[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]`)
	},
	"another special name for the one there is": func(ctx context.Context, f *framework.Framework, _, name string) string {
		return updated(ctx, f, name, `[{"op": "replace", "path": "/template/spec/containers/0/env/0/name", "value": "other:name"}]`)
	},
	"an update to a name that no variable can have": func(ctx context.Context, f *framework.Framework, _, name string) string {
		return updated(ctx, f, name, `[{"op": "replace", "path": "/template/spec/containers/0/env/0/name", "value": "a=b"}]`)
	},
}

func withFileKeyRef(name string) *v1.Pod {
	pod := pods.Once(name, pods.Dumps(dumps, envfile.Var("A", "data", "config.env", "A", ptr.To(true))))
	pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("data")}
	return pod
}

func withSubPathExpr(name, a string) *v1.Pod {
	container := pods.Dumps(dumps, v1.EnvVar{Name: "A", Value: a})
	container.VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data", SubPathExpr: "$(A)"}}
	pod := pods.Once(name, container)
	pod.Spec.Volumes = []v1.Volume{pods.EmptyDir("data")}
	return pod
}

// makeSpecialTemplates stores what only an API server whose relaxed gate is on accepts, for each build.
func makeSpecialTemplates(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	for _, build := range []string{stock, patched} {
		template := &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: build}}
		template.Template.Spec = pods.Once(build, pods.Dumps(dumps, v1.EnvVar{Name: special, Value: "1"})).Spec
		template.Template.Spec.RestartPolicy = v1.RestartPolicyAlways
		_, err := f.ClientSet.CoreV1().PodTemplates(f.Namespace.Name).Create(ctx, template, metav1.CreateOptions{})
		framework.ExpectNoError(err)
	}
}

// updated is what an API server says of a patch of the template that was stored for its build.
func updated(ctx context.Context, f *framework.Framework, name, patch string) string {
	ginkgo.GinkgoHelper()
	build, _, _ := strings.Cut(name, "-")
	return strings.ReplaceAll(warnedOf(f, name, func(client kubernetes.Interface) error {
		_, err := client.CoreV1().PodTemplates(f.Namespace.Name).Patch(ctx, build, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}), `"`+build+`"`, "NAME")
}

const (
	configMap  = "special"
	specialKey = "1st.key" // as every ConfigMap may have one, and no variable of v1.29
)

func makeSpecialConfigMap(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	_, err := f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMap},
		Data:       map[string]string{specialKey: "1", "plain": "2", "with.dot": "3", "with-dash": "4"},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// statefulSet is what an API server says of a StatefulSet without pods.
func statefulSet(ctx context.Context, f *framework.Framework, name string, edit func(*v1.Container)) string {
	ginkgo.GinkgoHelper()
	labels := map[string]string{"app": name}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To[int32](0), ServiceName: "none",
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{pods.Dumps(dumps)}}},
		},
	}
	edit(&set.Spec.Template.Spec.Containers[0])
	return warnedOf(f, name, func(client kubernetes.Interface) error {
		_, err := client.AppsV1().StatefulSets(f.Namespace.Name).Create(ctx, set, metav1.CreateOptions{})
		return err
	})
}

// warnedOf is the error and the warnings of requests about the object called name.
func warnedOf(f *framework.Framework, name string, do func(kubernetes.Interface) error) string {
	ginkgo.GinkgoHelper()
	var warnings warnings
	config := rest.CopyConfig(f.ClientConfig())
	config.WarningHandler = &warnings
	client, err := kubernetes.NewForConfig(config)
	framework.ExpectNoError(err)
	return strings.ReplaceAll(fmt.Sprint(do(client)), name, "NAME") + strings.Join(warnings, "")
}

type warnings []string

func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code == 299 {
		*w = append(*w, warned(text))
	}
}

func warned(text string) string { return "\nwarning: " + text }

// ran is what an API server and a kubelet make of a pod, until its container has ended or
// waits for good.
func ran(ctx context.Context, f *framework.Framework, node string, pod *v1.Pod) string {
	ginkgo.GinkgoHelper()
	pod.Spec.NodeName, pod.Spec.Hostname = node, "host"
	if _, err := pods.TryCreate(ctx, f, pod); err != nil {
		return strings.ReplaceAll(err.Error(), pod.Name, "NAME")
	}
	return ended(ctx, f, pod.Name)
}

// ranStatically is what a kubelet makes of a static pod.
func ranStatically(ctx context.Context, f *framework.Framework, node string, pod *v1.Pod) string {
	ginkgo.GinkgoHelper()
	pod.APIVersion, pod.Kind, pod.Namespace, pod.Spec.Hostname = "v1", "Pod", f.Namespace.Name, "host"
	manifest, err := json.Marshal(pod)
	framework.ExpectNoError(err)
	file := "/etc/kubernetes/manifests/" + pod.Namespace + "-" + pod.Name + ".json" // the log may have older ones
	on := nodes.Node(node)
	ginkgo.DeferCleanup(func(ctx context.Context) { on.Run(ctx, "rm -f "+file) })
	// The kubelet ignores a file whose name begins with a dot, and logs why it leaves out another one.
	on.Run(ctx, fmt.Sprintf("mkdir -p /etc/kubernetes/manifests\ncat > /etc/kubernetes/manifests/.new <<'END'\n%s\nEND\nmv /etc/kubernetes/manifests/.new %s", manifest, file))
	mirror, refusal := pod.Name+"-"+node, ""
	gomega.Eventually(ctx, func(ctx context.Context) bool {
		_, err := f.ClientSet.CoreV1().Pods(pod.Namespace).Get(ctx, mirror, metav1.GetOptions{})
		refusal = strings.TrimSpace(on.Run(ctx, "journalctl -u kubelet --no-pager -o cat | grep -F "+file+" | grep -oE 'invalid pod: .*' | head -n 1"))
		return err == nil || refusal != ""
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeTrue(), "a static pod, or why there is none")
	if refusal != "" {
		return refusal
	}
	return ended(ctx, f, mirror)
}

// ended is how the container of a pod has ended, and with what variables, or what it waits for.
func ended(ctx context.Context, f *framework.Framework, name string) string {
	ginkgo.GinkgoHelper()
	last := pods.Await(ctx, f, name, "its container to end", func(pod *v1.Pod) bool {
		state := pods.Status(pod, dumps).State
		return state.Terminated != nil || state.Waiting != nil && state.Waiting.Reason == pods.ConfigError
	})
	state := pods.Status(last, dumps).State
	if state.Terminated == nil {
		return pods.ConfigError + " " + state.Waiting.Message
	}
	out := fmt.Sprintf("%s %d %s", state.Terminated.Reason, state.Terminated.ExitCode, state.Terminated.Message)
	if state.Terminated.ExitCode == 0 {
		out += fmt.Sprint(pods.Env(ctx, f, name, dumps)) // sorted by name
	}
	return strings.ReplaceAll(out, name, "NAME")
}
