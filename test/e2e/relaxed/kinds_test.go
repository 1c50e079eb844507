package relaxed

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/e2e/internal/workloads"
)

// kind is a kind of the API that is, or has a template of, a pod.
type kind struct {
	name     string
	path     string // of the pod's spec
	resource schema.GroupVersionResource
	// object is one with spec for its pod.
	object func(spec v1.PodSpec) runtime.Object
	// fixed says that the variables cannot be changed once the object is stored.
	fixed bool
}

var (
	objectMeta = metav1.ObjectMeta{Name: "object"}
	labels     = map[string]string{"app.kubernetes.io/name": "relaxed"}
	selector   = &metav1.LabelSelector{MatchLabels: labels}
	dryRun     = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
)

// kinds are all kinds of Kubernetes' own. Pod stands first.
var kinds = func() []kind {
	all := []kind{{"Pod", "spec", v1.SchemeGroupVersion.WithResource("pods"), func(spec v1.PodSpec) runtime.Object {
		return &v1.Pod{ObjectMeta: objectMeta, Spec: spec}
	}, true}}
	for _, w := range workloads.All {
		all = append(all, kind{w.Name, w.At("spec"), w.Resource, func(spec v1.PodSpec) runtime.Object {
			return w.Of(objectMeta.Name, &v1.Pod{Spec: spec})
		}, w.Name == "Job"})
	}
	return all
}()

// dryRun has the API server validate and admit an object of the kind, and store nothing.
func (k kind) dryRun(ctx context.Context, client dynamic.Interface, namespace string, spec v1.PodSpec) error {
	_, err := k.create(ctx, client, namespace, spec, dryRun)
	return err
}

func (k kind) create(ctx context.Context, client dynamic.Interface, namespace string, spec v1.PodSpec, options metav1.CreateOptions) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(k.object(spec))
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(k.resource.GroupVersion().String())
	object.SetKind(k.name)
	return client.Resource(k.resource).Namespace(namespace).Create(ctx, object, options)
}

// patch changes a stored object of the kind: its labels, and its variables unless env is nil.
func (k kind) patch(ctx context.Context, client dynamic.Interface, namespace string, env []v1.EnvVar) (*unstructured.Unstructured, error) {
	patch := []map[string]any{{"op": "add", "path": "/metadata/labels", "value": map[string]string{"updated": "true"}}}
	if env != nil {
		at := "/" + strings.ReplaceAll(k.path, ".", "/") + "/containers/0/env"
		patch = append(patch, map[string]any{"op": "replace", "path": at, "value": env})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return client.Resource(k.resource).Namespace(namespace).Patch(ctx, objectMeta.Name, types.JSONPatchType, text, metav1.PatchOptions{})
}

func templateOf(spec v1.PodSpec) v1.PodTemplateSpec {
	spec.RestartPolicy = v1.RestartPolicyAlways
	return v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}
}

// deploymentOf is a Deployment that makes no pods.
func deploymentOf(spec v1.PodSpec) *appsv1.Deployment {
	none := int32(0)
	return &appsv1.Deployment{ObjectMeta: objectMeta, Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: selector, Template: templateOf(spec)}}
}

// named is a pod with the variable, and with an init container.
func named(name string) v1.PodSpec {
	setup := dumps()
	setup.Name = "setup"
	return v1.PodSpec{InitContainers: []v1.Container{setup}, Containers: []v1.Container{dumps(literal("PLAIN"), literal(name))}}
}

// prefixed is a pod with an envFrom that has the prefix.
func prefixed(prefix string) v1.PodSpec {
	spec := named("OTHER")
	from := fromConfigMap()
	from.Prefix = prefix
	spec.Containers[0].EnvFrom = []v1.EnvFromSource{from}
	return spec
}

var _ = describe("the API server accepts special names and prefixes in", func(f *framework.Framework) {
	for _, kind := range kinds {
		f.It("a "+kind.name, suite.Shows("KEP-4369", "create on"), func(ctx context.Context) {
			for _, special := range []string{story, "1ST", " ", `"`} {
				framework.ExpectNoError(kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named(special)), "name %q", special)
				framework.ExpectNoError(kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, prefixed(special)), "prefix %q", special)
			}
		})

		ginkgo.DescribeTable("a "+kind.name+", but refuses", suite.Shows("KEP-4369", "refused"), func(ctx context.Context, name string) {
			kind.expectInvalid(f, kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, named(name)), ".containers[0].env[1].name")
			if name != "" { // no prefix at all
				kind.expectInvalid(f, kind.dryRun(ctx, f.DynamicClient, f.Namespace.Name, prefixed(name)), ".containers[0].envFrom[0].prefix")
			}
		},
			ginkgo.Entry("an empty name", ""),
			ginkgo.Entry("an equals sign", "A=B"),
			ginkgo.Entry("a tab", "A\tB"),
			ginkgo.Entry("the character after the last printable one", "A\x7f"),
			ginkgo.Entry("a letter outside of ASCII", "Ä"),
		)
	}
})

var _ = describe("the API server accepts updates", func(f *framework.Framework) {
	for _, kind := range kinds {
		f.It("of a "+kind.name+" that has special names, and that get some", func(ctx context.Context) {
			_, err := kind.create(ctx, f.DynamicClient, f.Namespace.Name, gated(named(story)), metav1.CreateOptions{})
			framework.ExpectNoError(err)
			_, err = kind.patch(ctx, f.DynamicClient, f.Namespace.Name, nil)
			framework.ExpectNoError(err, "labels")
			if kind.fixed {
				return
			}
			want := []v1.EnvVar{literal("PLAIN"), literal("1ST"), literal("another special name")}
			updated, err := kind.patch(ctx, f.DynamicClient, f.Namespace.Name, want)
			framework.ExpectNoError(err, "variables")
			containers, _, err := unstructured.NestedSlice(updated.Object, append(strings.Split(kind.path, "."), "containers")...)
			framework.ExpectNoError(err)
			var container v1.Container
			framework.ExpectNoError(runtime.DefaultUnstructuredConverter.FromUnstructured(containers[0].(map[string]any), &container))
			gomega.Expect(container.Env).To(gomega.Equal(want))
		})
	}

	f.It("of the resources of a running pod that has special names", func(ctx context.Context) {
		requireResize(f)
		serving := dumps(literal(story))
		serving.Args = []string{"serve"}
		serving.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2m")}
		pods.Create(ctx, f, pods.Once("resized", serving))
		pods.Await(ctx, f, "resized", "its container to run", func(pod *v1.Pod) bool { return pods.Status(pod, consumer).State.Running != nil })
		patch := `{"spec":{"containers":[{"name":"` + consumer + `","resources":{"requests":{"cpu":"3m"}}}]}}`
		resized, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, "resized", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
		framework.ExpectNoError(err)
		gomega.Expect(resized.Spec.Containers[0].Resources.Requests.Cpu().String()).To(gomega.Equal("3m"))
		gomega.Expect(resized.Spec.Containers[0].Env).To(gomega.Equal([]v1.EnvVar{literal(story)}))
	})
}, suite.Shows("KEP-4369", "update on"))

// gated is spec for pods that are never scheduled.
func gated(spec v1.PodSpec) v1.PodSpec {
	spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "podenv.dev/never"}}
	pods.Quick(&spec)
	return spec
}

// requireResize skips the spec where the API server has no pods/resize, which is there
// from v1.32 on, and served from v1.33 on.
func requireResize(f *framework.Framework) {
	ginkgo.GinkgoHelper()
	list, err := f.ClientSet.Discovery().ServerResourcesForGroupVersion("v1")
	framework.ExpectNoError(err)
	if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }) {
		ginkgo.Skip("the API server does not serve pods/resize")
	}
}

// expectInvalid checks that the API server refuses the object of the kind for a field of its
// pod spec. Up to v1.33 it takes any template of a StatefulSet, as every Kubernetes there.
func (k kind) expectInvalid(f *framework.Framework, err error, field string) {
	ginkgo.GinkgoHelper()
	if k.takesAnything(f) {
		framework.ExpectNoError(err)
		return
	}
	expectInvalid(err, k.path+field)
}

func (k kind) takesAnything(f *framework.Framework) bool {
	ginkgo.GinkgoHelper()
	return k.name == "StatefulSet" && olderThan(f, 34)
}

// olderThan reports whether the API server is of a minor before v1.MINOR.
func olderThan(f *framework.Framework, minor uint) bool {
	ginkgo.GinkgoHelper()
	server, err := f.ClientSet.Discovery().ServerVersion()
	framework.ExpectNoError(err)
	return version.MustParseGeneric(server.GitVersion).LessThan(version.MajorMinor(1, minor))
}

func expectInvalid(err error, field string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(fieldsOf(err)).To(gomega.ConsistOf(field), "fields of %v", err)
}
