package upgrade

import (
	"context"
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
			server, node := controlPlane(ctx, f), worker(ctx, f)
			makeSpecialConfigMap(ctx, f)
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
					want = change(want)
				}
				if got[patched][name] != want {
					differences = append(differences, fmt.Sprintf("%s: want\n%s\ngot\n%s", name, want, got[patched][name]))
				}
			}
			gomega.Expect(strings.Join(differences, "\n")).To(gomega.BeEmpty(), "what a patched release does otherwise")
		})
	})

// changed is what the fixes that have no gate make of what a stock release does.
var changed = map[string]func(stock string) string{
	"a StatefulSet whose template mounts a volume that only admission can add": func(stock string) string {
		return stock + warned(`spec.template.spec.containers[0].volumeMounts[0].name: no pod can have this as it stands: Not found: "added"`)
	},
	"an update of a ReplicationController": func(stock string) string {
		return stock + warned(`spec.template.spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`)
	},
	"a command that is the value of a variable": func(stock string) string {
		return strings.ReplaceAll(stock, nope, "$(A)")
	},
	"a variable that no process can be given": func(string) string {
		return pods.ConfigError + ` cannot expand variable "B": the result is longer than a process can be given (131071 bytes, with the name of a variable)`
	},
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
		container := pods.Dumps(dumps, v1.EnvVar{Name: "A", ValueFrom: &v1.EnvVarSource{
			FileKeyRef: &v1.FileKeySelector{VolumeName: "data", Path: "config.env", Key: "A", Optional: ptr.To(true)},
		}})
		pod := pods.Once(name, container)
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		return ran(ctx, f, node, pod)
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
	pod.Spec.NodeName = node
	if _, err := pods.TryCreate(ctx, f, pod); err != nil {
		return strings.ReplaceAll(err.Error(), pod.Name, "NAME")
	}
	last := pods.Await(ctx, f, pod.Name, "its container to end", func(pod *v1.Pod) bool {
		state := pods.Status(pod, dumps).State
		return state.Terminated != nil || state.Waiting != nil && state.Waiting.Reason == pods.ConfigError
	})
	ended := pods.Status(last, dumps).State.Terminated
	if ended == nil {
		return pods.ConfigError + " " + pods.Status(last, dumps).State.Waiting.Message
	}
	out := fmt.Sprintf("%s %d %s", ended.Reason, ended.ExitCode, ended.Message)
	if ended.ExitCode == 0 {
		out += fmt.Sprint(pods.Env(ctx, f, pod.Name, dumps)) // sorted by name
	}
	return strings.ReplaceAll(out, pod.Name, "NAME")
}
