package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/workloads"
	"podenv.dev/test/images"
	"podenv.dev/test/manifests"
)

const (
	fromFile = "FROM_FILE" // the variable that comes from the env file
	regular  = "regular"   // the container that has it
	// owner is the field manager that applies the objects.
	owner = "podenv.dev/owner"
)

var _ = framework.SIGDescribe("node")("Rolling control plane", framework.WithFeature(feature),
	framework.WithLabel("FeatureGate:"+gate), framework.WithLabel("FeatureGate:"+relaxed),
	framework.WithSlow(), framework.WithSerial(), framework.WithDisruptive(), func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		ginkgo.BeforeEach(func(ctx context.Context) {
			for _, feature := range guarded() {
				components.RequireGate(ctx, string(feature.Name))
			}
		})
		f := framework.NewDefaultFramework("rolling")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		ginkgo.Describe("of an API server with the gates on and one with them off", ginkgo.Ordered, ginkgo.ContinueOnFailure, func() {
			var servers *nodes.APIServerPair
			ginkgo.BeforeAll(func(ctx context.Context) {
				servers = nodes.StartSecondAPIServer(ctx, f, gatesThatCanBeOff()...)
				servers.Balance(ctx, nodes.ToBoth)
			})
			for _, k := range rollingKinds() {
				r := func() rolling { return rolling{f, servers, k} }
				ginkgo.It("a new "+k.name+" is refused by the one with the gates off, as far as the release validates its template, and is shown whole by both once the other took it", func(ctx context.Context) { r().create(ctx) })
				ginkgo.It("a "+k.name+" keeps what a request does not ask to drop, whichever server it goes through", func(ctx context.Context) { r().keep(ctx) })
				if k.mutable {
					ginkgo.It("a "+k.name+" loses what a request asks to drop, whichever server it goes through", func(ctx context.Context) { r().drop(ctx) })
				}
			}
			ginkgo.It("no controller gets new pods from the one with the gates off; with both behind one endpoint workloads become complete", func(ctx context.Context) {
				rollout(ctx, f, servers)
			})
		})
	})

// guarded are the features whose probe only an API server with the gate on takes.
func guarded() []featuregates.State {
	return slices.DeleteFunc(probed(), func(s featuregates.State) bool { return len(s.Probe.Env) == 0 })
}

// gatesThatCanBeOff are those of the features that are guarded, but for gates that are locked.
func gatesThatCanBeOff() (gates []string) {
	for _, feature := range guarded() {
		if !feature.Spec.LockToDefault {
			gates = append(gates, string(feature.Name))
		}
	}
	return gates
}

// rollingKind is a kind of object that carries containers.
type rollingKind struct {
	name     string
	resource schema.GroupVersionResource
	template []string // where in the object the pod is
	mutable  bool     // its variables can be changed
	scales   bool
	status   string                // a patch of its status
	object   func() runtime.Object // one that no controller makes a pod of
}

// rollingTemplate is a pod that uses all features that are guarded, and is never scheduled.
func rollingTemplate(restart v1.RestartPolicy) v1.PodTemplateSpec {
	template := rollingPod(pods.Dumps(regular, rollingEnv()...))
	template.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "podenv.dev/never"}}
	template.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1m")}
	template.Spec.RestartPolicy = restart
	return template
}

// rollingPod is a pod of one container, with what the probes of all features need beside theirs.
func rollingPod(container v1.Container) v1.PodTemplateSpec {
	ginkgo.GinkgoHelper()
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "rolling"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{container}},
	}
	for _, feature := range guarded() {
		pod, err := manifests.Pod(feature.Probe.Pod)
		framework.ExpectNoError(err)
		template.Spec.InitContainers = append(template.Spec.InitContainers, pod.Spec.InitContainers...)
		template.Spec.Volumes = append(template.Spec.Volumes, pod.Spec.Volumes...)
	}
	pods.Quick(&template.Spec)
	return template
}

// rollingEnv are the variables of all probes that only an API server with the gates on takes.
func rollingEnv() (env []v1.EnvVar) {
	ginkgo.GinkgoHelper()
	for _, feature := range guarded() {
		pod, err := manifests.Pod(feature.Probe.Pod)
		framework.ExpectNoError(err)
		for _, v := range pod.Spec.Containers[0].Env {
			if slices.Contains(feature.Probe.Env, v.Name) {
				env = append(env, v)
			}
		}
	}
	return env
}

// rollingNames are the names of rollingEnv.
func rollingNames() (names []string) {
	for _, v := range rollingEnv() {
		names = append(names, v.Name)
	}
	return names
}

// inert are the workloads with the fields of the spec that keep their controllers from making pods.
var inert = map[string]struct {
	rollingKind
	spec map[string]any
}{
	"Deployment":  {rollingKind{mutable: true, scales: true, status: touched}, map[string]any{"paused": true, "replicas": int64(0)}},
	"StatefulSet": {rollingKind{mutable: true, scales: true, status: touched}, map[string]any{"replicas": int64(0)}},
	"Job":         {rollingKind{status: touched}, map[string]any{"suspend": true}},
	"CronJob":     {rollingKind{mutable: true, status: `{"status":{"lastScheduleTime":"2026-01-01T00:00:00Z"}}`}, map[string]any{"suspend": true}},
}

const touched = `{"status":{"conditions":[{"type":"Touched","status":"True"}]}}`

func rollingKinds() []rollingKind {
	template := rollingTemplate(v1.RestartPolicyAlways)
	pod := &v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	kinds := []rollingKind{{name: "Pod", resource: v1.SchemeGroupVersion.WithResource("pods"), status: `{"status":{"message":"touched"}}`,
		object: func() runtime.Object { return pod }}}
	for _, w := range workloads.All {
		k, ok := inert[w.Name]
		if !ok {
			continue
		}
		k.name, k.resource, k.template = w.Name, w.Resource, w.Template
		k.object = func() runtime.Object {
			object := w.Of("", pod)
			for field, value := range k.spec {
				framework.ExpectNoError(unstructured.SetNestedField(object.Object, value, "spec", field))
			}
			return object
		}
		kinds = append(kinds, k.rollingKind)
	}
	return kinds
}

// rolling is one kind while the control plane rolls.
type rolling struct {
	f       *framework.Framework
	servers *nodes.APIServerPair
	rollingKind
}

func (r rolling) client(s nodes.APIServer) dynamic.ResourceInterface {
	return s.Dynamic.Resource(r.resource).Namespace(r.f.Namespace.Name)
}

// podSpec is the path of a field of the pod.
func (r rolling) podSpec(field string) []string {
	return append(slices.Clone(r.template), "spec", field)
}

// build is an object with some variables of rollingEnv.
func (r rolling) build(name string, variables ...string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.object())
	framework.ExpectNoError(err)
	delete(content, "status")
	object := &unstructured.Unstructured{Object: content}
	object.SetName(name)
	object.SetLabels(map[string]string{"app": "rolling"})
	env := slices.DeleteFunc(r.env(object), func(v any) bool { return !slices.Contains(variables, v.(map[string]any)["name"].(string)) })
	r.setEnv(object, env)
	return object
}

// env are the variables of the container.
func (r rolling) env(object *unstructured.Unstructured) []any {
	ginkgo.GinkgoHelper()
	containers, _, err := unstructured.NestedSlice(object.Object, r.podSpec("containers")...)
	framework.ExpectNoError(err)
	env, _, err := unstructured.NestedSlice(containers[0].(map[string]any), "env")
	framework.ExpectNoError(err)
	return env
}

func (r rolling) setEnv(object *unstructured.Unstructured, env []any) {
	ginkgo.GinkgoHelper()
	containers, _, err := unstructured.NestedSlice(object.Object, r.podSpec("containers")...)
	framework.ExpectNoError(err)
	containers[0].(map[string]any)["env"] = env
	framework.ExpectNoError(unstructured.SetNestedSlice(object.Object, containers, r.podSpec("containers")...))
}

// apply has owner apply an object.
func (r rolling) apply(ctx context.Context, s nodes.APIServer, object *unstructured.Unstructured) error {
	_, err := r.client(s).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: owner, Force: true})
	return err
}

// create checks what happens to new objects.
func (r rolling) create(ctx context.Context) {
	on, off := r.servers.On, r.servers.Off
	for how, create := range map[string]func(*unstructured.Unstructured) error{
		"created": func(o *unstructured.Unstructured) error {
			_, err := r.client(off).Create(ctx, o, metav1.CreateOptions{})
			return err
		},
		"applied": func(o *unstructured.Unstructured) error { return r.apply(ctx, off, o) },
	} {
		for _, feature := range guarded() {
			name := how + "-" + strings.ToLower(string(feature.Name))
			if err := create(r.build(name, feature.Probe.Env...)); feature.Spec.LockToDefault {
				framework.ExpectNoError(err, "%s: a new %s that uses %s", off.Name, r.name, feature.Name)
			} else {
				r.expectRefused(ctx, name, err)
			}
		}
		framework.ExpectNoError(create(r.build(how+"-without")), "%s: a new %s with none of them", off.Name, r.name)
	}
	want := r.env(r.build("taken", rollingNames()...))
	_, err := r.client(on).Create(ctx, r.build("taken", rollingNames()...), metav1.CreateOptions{})
	framework.ExpectNoError(err, "%s: a new %s", on.Name, r.name)
	r.expect(ctx, "taken", want, "it was created")
	for _, s := range r.servers.Both() {
		r.expectWatched(ctx, s, "taken", want)
	}
}

// expectRefused checks what the server with the gates off made of a request, which ended
// with err, for an object whose variables it must not take. Up to v1.33 a release stores any
// template of a StatefulSet, without the fields that it drops, and only refuses its pods.
func (r rolling) expectRefused(ctx context.Context, name string, err error) {
	ginkgo.GinkgoHelper()
	if r.resource.Resource == "statefulsets" && !components.AtLeast("v1.34") {
		framework.ExpectNoError(err, "%s: %s %s", r.servers.Off.Name, r.name, name)
		for _, s := range r.servers.Both() {
			object, err := r.client(s).Get(ctx, name, metav1.GetOptions{})
			framework.ExpectNoError(err, s.Name)
			gomega.Expect(fmt.Sprint(r.env(object))).NotTo(gomega.ContainSubstring("fileKeyRef"), "%s: %s %s", s.Name, r.name, name)
		}
		return
	}
	gomega.Expect(err).To(gomega.Satisfy(apierrors.IsInvalid), "%s: %s %s", r.servers.Off.Name, r.name, name)
}

// expect checks that both servers show these variables.
func (r rolling) expect(ctx context.Context, name string, want []any, after string) {
	ginkgo.GinkgoHelper()
	for _, s := range r.servers.Both() {
		object, err := r.client(s).Get(ctx, name, metav1.GetOptions{})
		framework.ExpectNoError(err, s.Name)
		gomega.Expect(r.env(object)).To(gomega.Equal(want), "%s: %s %s after %s", s.Name, r.name, name, after)
	}
}

// expectWatched checks that a watch shows these variables, too.
func (r rolling) expectWatched(ctx context.Context, s nodes.APIServer, name string, want []any) {
	ginkgo.GinkgoHelper()
	watch, err := r.client(s).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, TimeoutSeconds: ptr.To(int64(patience / time.Second))})
	framework.ExpectNoError(err, s.Name)
	defer watch.Stop()
	event, ok := <-watch.ResultChan()
	gomega.Expect(ok).To(gomega.BeTrue(), "%s: the watch has an event", s.Name)
	object, ok := event.Object.(*unstructured.Unstructured)
	gomega.Expect(ok).To(gomega.BeTrue(), "%s: the event has an object: %v", s.Name, event)
	gomega.Expect(r.env(object)).To(gomega.Equal(want), "%s: %s %s in a watch", s.Name, r.name, name)
}

// write is a way to write to an object, but not to its variables. What it writes differs
// with n.
type write struct {
	name string
	do   func(ctx context.Context, s nodes.APIServer, name string, n int) error
}

// patch is a write that patches the object, or a subresource.
func (r rolling) patch(name string, kind types.PatchType, format string, subresource ...string) write {
	return write{name, func(ctx context.Context, s nodes.APIServer, object string, n int) error {
		_, err := r.client(s).Patch(ctx, object, kind, fmt.Appendf(nil, format, n), metav1.PatchOptions{}, subresource...)
		return err
	}}
}

func (r rolling) writes(ctx context.Context) []write {
	ginkgo.GinkgoHelper()
	all := []write{
		{"an update of a label", func(ctx context.Context, s nodes.APIServer, name string, n int) error {
			return r.update(ctx, s, name, func(object *unstructured.Unstructured) { object.SetLabels(map[string]string{"updated": fmt.Sprint(n)}) })
		}},
		r.patch("a JSON patch", types.JSONPatchType, `[{"op":"add","path":"/metadata/labels/json","value":"%d"}]`),
		r.patch("a merge patch", types.MergePatchType, `{"metadata":{"labels":{"merge":"%d"}}}`),
		{"another manager's server-side apply", func(ctx context.Context, s nodes.APIServer, name string, n int) error {
			object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": r.resource.GroupVersion().String(), "kind": r.name}}
			object.SetName(name)
			object.SetLabels(map[string]string{"applied": fmt.Sprint(n)})
			_, err := r.client(s).Apply(ctx, name, object, metav1.ApplyOptions{FieldManager: "podenv.dev/other"})
			return err
		}},
		{"a patch of the status", func(ctx context.Context, s nodes.APIServer, name string, _ int) error {
			_, err := r.client(s).Patch(ctx, name, types.MergePatchType, []byte(r.status), metav1.PatchOptions{}, "status")
			return err
		}},
		{"an update of the status", func(ctx context.Context, s nodes.APIServer, name string, _ int) error {
			object, err := r.client(s).Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				object.SetResourceVersion("") // whatever a controller writes meanwhile
				_, err = r.client(s).UpdateStatus(ctx, object, metav1.UpdateOptions{})
			}
			return err
		}},
	}
	if r.mutable || r.template == nil {
		all = append(all, write{"an update of the image", func(ctx context.Context, s nodes.APIServer, name string, _ int) error {
			return r.update(ctx, s, name, r.changeImage)
		}})
	}
	if r.scales {
		all = append(all, r.patch("scaling", types.MergePatchType, `{"spec":{"replicas":%d}}`, "scale"))
	}
	if r.template == nil {
		all = append(all, r.patch("an ephemeral container", types.StrategicMergePatchType,
			`{"spec":{"ephemeralContainers":[{"name":"debug-%d","image":"`+images.Busybox+`"}]}}`, "ephemeralcontainers"))
		if r.hasResize() {
			all = append(all, r.patch("a resize", types.StrategicMergePatchType,
				`{"spec":{"containers":[{"name":"`+regular+`","resources":{"requests":{"cpu":"1%dm"}}}]}}`, "resize"))
		}
	}
	return all
}

// hasResize says whether the release lets pods be resized.
func (r rolling) hasResize() bool {
	ginkgo.GinkgoHelper()
	list, err := r.servers.Off.Client.Discovery().ServerResourcesForGroupVersion("v1")
	framework.ExpectNoError(err)
	return slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == "pods/resize" })
}

// update changes what a server shows and writes it back, with all else that it shows.
func (r rolling) update(ctx context.Context, s nodes.APIServer, name string, change func(*unstructured.Unstructured)) error {
	object, err := r.client(s).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	change(object)
	object.SetResourceVersion("") // whatever a controller writes meanwhile
	_, err = r.client(s).Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func (r rolling) changeImage(object *unstructured.Unstructured) {
	ginkgo.GinkgoHelper()
	containers, _, err := unstructured.NestedSlice(object.Object, r.podSpec("containers")...)
	framework.ExpectNoError(err)
	container := containers[0].(map[string]any)
	container["image"] = otherImage(container["image"].(string))
	framework.ExpectNoError(unstructured.SetNestedSlice(object.Object, containers, r.podSpec("containers")...))
}

// keep checks that writes of all kinds, through both servers, leave the variables.
func (r rolling) keep(ctx context.Context) {
	object := r.build("kept", rollingNames()...)
	framework.ExpectNoError(r.apply(ctx, r.servers.On, object))
	want := r.env(object)
	for n, s := range r.servers.Both() {
		for _, w := range r.writes(ctx) {
			framework.ExpectNoError(w.do(ctx, s, "kept", n+1), "%s: %s", s.Name, w.name)
			r.expect(ctx, "kept", want, w.name+" through "+s.Name)
			r.expectOwned(ctx, "kept", true)
		}
	}
}

// expectOwned checks whether owner is, on both servers, who manages the reference to the file.
func (r rolling) expectOwned(ctx context.Context, name string, want bool) {
	ginkgo.GinkgoHelper()
	var path []string
	for _, field := range r.podSpec("containers") {
		path = append(path, "f:"+field)
	}
	path = append(path, `k:{"name":"`+regular+`"}`, "f:env", `k:{"name":"`+fromFile+`"}`, "f:valueFrom", "f:fileKeyRef")
	for _, s := range r.servers.Both() {
		object, err := r.client(s).Get(ctx, name, metav1.GetOptions{})
		framework.ExpectNoError(err, s.Name)
		owned := false
		for _, entry := range object.GetManagedFields() {
			var fields map[string]any
			framework.ExpectNoError(json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
			_, found, err := unstructured.NestedFieldNoCopy(fields, path...)
			framework.ExpectNoError(err)
			owned = owned || found && entry.Manager == owner
		}
		gomega.Expect(owned).To(gomega.Equal(want), "%s: %s manages the reference of %s %s: %v", s.Name, owner, r.name, name, object.GetManagedFields())
	}
}

// drop checks that a request that asks to drop the reference to the file does, and that
// only the server with the gates on brings it back.
func (r rolling) drop(ctx context.Context) {
	for n, s := range r.servers.Both() {
		object := r.build(fmt.Sprintf("dropped-%d", n), rollingNames()...)
		name, all := object.GetName(), r.env(object)
		without := r.build(name, slices.DeleteFunc(rollingNames(), func(name string) bool { return name == fromFile })...)
		framework.ExpectNoError(r.apply(ctx, r.servers.On, object))

		framework.ExpectNoError(r.update(ctx, s, name, func(o *unstructured.Unstructured) { r.setEnv(o, r.env(without)) }), s.Name)
		r.expect(ctx, name, r.env(without), "an update without it through "+s.Name)
		r.expectOwned(ctx, name, false)

		ginkgo.By("bringing it back after " + s.Name + " dropped it")
		back := func(o *unstructured.Unstructured) { r.setEnv(o, all) }
		r.expectRefused(ctx, name, r.update(ctx, r.servers.Off, name, back))
		framework.ExpectNoError(r.update(ctx, r.servers.On, name, back))
		framework.ExpectNoError(r.apply(ctx, r.servers.On, object))
		r.expect(ctx, name, all, "it was brought back")

		// The update that brought it back has made its manager one of the reference, too.
		framework.ExpectNoError(r.disown(ctx, name))
		framework.ExpectNoError(r.apply(ctx, s, without), s.Name)
		r.expect(ctx, name, r.env(without), "its owner applied the object without it through "+s.Name)
		r.expectOwned(ctx, name, false)
	}
}

// disown leaves owner the only manager of an object.
func (r rolling) disown(ctx context.Context, name string) error {
	return r.update(ctx, r.servers.On, name, func(o *unstructured.Unstructured) {
		o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager != owner }))
	})
}
