package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

const (
	podPreset = "PodPreset"
	presetKey = "podpreset.admission.kubernetes.io/podpreset-"
)

var podPresets = schema.GroupVersionResource{Group: "settings.k8s.io", Version: "v1alpha1", Resource: "podpresets"}

var _ = framework.SIGDescribe("node")("PodPreset", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+podPreset),
	framework.WithSerial(), framework.WithDisruptive(), func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		ginkgo.BeforeEach(func(ctx context.Context) { components.RequireGate(ctx, podPreset) })
		f := framework.NewDefaultFramework("podpreset")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("while the API server goes from the gate on to off, to stock and back, no preset is lost, and injected pods stay as they are", func(ctx context.Context) {
			node := controlPlane(ctx, f)
			p := presetsOf(f, f.ClientSet, f.DynamicClient)
			before := p.create(ctx, "kept")
			p.awaitInjected(ctx, "kept")
			injected := p.pod(ctx, "injected", "kept")
			gomega.Expect(injected.Annotations).To(gomega.HaveKey(presetKey + "kept"))

			minor := nodes.Options.Minor
			for i, s := range []featuregates.Runs{
				{Build: patched, Minor: minor}, {Build: stock, Minor: minor}, {Build: patched, Minor: minor, On: true},
			} {
				ginkgo.By("changing to the API server " + s.String())
				var change []string
				if s.Build == patched {
					change = append(change, fmt.Sprintf("%s=%t", podPreset, s.On))
				}
				node.Swap(ctx, apiServer, fmt.Sprintf("%s:%s", s.Build, s.Minor), change...)
				state, err := components.GateAt(ctx, f.ClientSet, podPreset, components.APIServerMetrics)
				framework.ExpectNoError(err)
				gomega.Expect(state).To(gomega.Equal(s.Gate(podPreset)))

				now, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, injected.Name, metav1.GetOptions{})
				framework.ExpectNoError(err)
				gomega.Expect(now.UID).To(gomega.Equal(injected.UID))
				gomega.Expect(now.Spec).To(gomega.Equal(injected.Spec))
				gomega.Expect(now.Annotations).To(gomega.HaveKeyWithValue(presetKey+"kept", before.GetResourceVersion()))
				if !s.On {
					_, err = p.client.Get(ctx, "kept", metav1.GetOptions{})
					gomega.Expect(err).To(gomega.Satisfy(apierrors.IsNotFound))
					fresh := p.pod(ctx, fmt.Sprintf("new-%d", i), "kept")
					gomega.Expect(fresh.Spec.Containers[0].Env).To(gomega.BeEmpty())
					// Written to by an API server that knows nothing of presets.
					now.Labels["touched"] = fmt.Sprint(i)
					now.ResourceVersion = "" // whatever the kubelet writes meanwhile
					_, err = f.ClientSet.CoreV1().Pods(now.Namespace).Update(ctx, now, metav1.UpdateOptions{})
					framework.ExpectNoError(err)
				}
			}

			after, err := p.client.Get(ctx, "kept", metav1.GetOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(after.Object).To(gomega.Equal(before.Object))
			gomega.Expect(p.pod(ctx, "last", "kept").Annotations).To(gomega.HaveKeyWithValue(presetKey+"kept", before.GetResourceVersion()))
		})

		f.It("of two API servers the one with the gate off neither serves presets nor injects, the other does both, and behind one endpoint a pod gets a preset whole or not at all", func(ctx context.Context) {
			servers := nodes.StartSecondAPIServer(ctx, f, podPreset)
			on, off := presetsOf(f, servers.On.Client, servers.On.Dynamic), presetsOf(f, servers.Off.Client, servers.Off.Dynamic)
			on.create(ctx, "skewed")
			on.awaitInjected(ctx, "skewed")
			_, err := off.client.Get(ctx, "skewed", metav1.GetOptions{})
			gomega.Expect(err).To(gomega.Satisfy(apierrors.IsNotFound))

			injected, plain := on.pod(ctx, "injected", "skewed"), off.pod(ctx, "plain", "skewed")
			gomega.Expect(injected.Spec.Containers[0].Env).To(gomega.HaveLen(1))
			gomega.Expect(plain.Spec.Containers[0].Env).To(gomega.BeEmpty())
			for server, p := range map[string]presets{"on": on, "off": off} {
				for _, pod := range []*v1.Pod{injected, plain} {
					ginkgo.By("a pod is shown, and takes an update, as it was created: " + pod.Name + " through the server with the gate " + server)
					got, err := p.pods.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
					framework.ExpectNoError(err)
					got.Labels["through"] = server
					got.ResourceVersion = "" // whatever the kubelet writes meanwhile
					got, err = p.pods.CoreV1().Pods(pod.Namespace).Update(ctx, got, metav1.UpdateOptions{})
					framework.ExpectNoError(err)
					gomega.Expect(got.Spec).To(gomega.Equal(pod.Spec))
					gomega.Expect(got.Annotations).To(gomega.Equal(pod.Annotations))
				}
			}

			servers.Balance(ctx, nodes.ToBoth)
			const group = "balanced"
			on.create(ctx, group)
			on.awaitInjected(ctx, group)
			ginkgo.By("creating pods through the endpoint, each over a connection of its own, and a workload")
			template := gatedFor("", group)
			template.Spec.RestartPolicy = v1.RestartPolicyAlways
			_, err = on.pods.AppsV1().ReplicaSets(f.Namespace.Name).Create(ctx, &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Name: group},
				Spec: appsv1.ReplicaSetSpec{
					Replicas: ptr.To(int32(10)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "workload"}},
					Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"preset": group, "of": "workload"}}, Spec: template.Spec},
				},
			}, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			for range 40 {
				config := *f.ClientConfig()
				config.Dial = (&net.Dialer{}).DialContext // else client-go shares connections
				client, err := kubernetes.NewForConfig(&config)
				framework.ExpectNoError(err)
				_, err = client.CoreV1().Pods(f.Namespace.Name).Create(ctx, gatedFor("", group), metav1.CreateOptions{})
				framework.ExpectNoError(err)
			}
			var list *v1.PodList
			gomega.Eventually(ctx, func(ctx context.Context) (_ []v1.Pod, err error) {
				list, err = on.pods.CoreV1().Pods(f.Namespace.Name).List(ctx, metav1.ListOptions{LabelSelector: "preset=" + group})
				return list.Items, err
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.HaveLen(50))
			injectedPods := 0
			for _, pod := range list.Items {
				_, annotated := pod.Annotations[presetKey+group]
				gomega.Expect(len(pod.Spec.Containers[0].Env) == 1).To(gomega.Equal(annotated), "%s: %v, %v", pod.Name, pod.Annotations, pod.Spec.Containers[0].Env)
				if annotated {
					injectedPods++
				}
			}
			framework.Logf("%d of %d pods were injected into", injectedPods, len(list.Items))
			gomega.Expect(injectedPods).To(gomega.And(gomega.BeNumerically(">", 0), gomega.BeNumerically("<", len(list.Items))), "pods that each of the servers created")
			for _, name := range []string{"skewed", group} {
				_, err = on.client.Get(ctx, name, metav1.GetOptions{})
				framework.ExpectNoError(err)
			}
		})

		f.It("an API server without the plugin ServiceAccount leaves out a preset with a token where the pod names no service account, and creates the pod", func(ctx context.Context) {
			server, _ := nodes.StartChangedAPIServer(ctx, f, nil, "--disable-admission-plugins=ServiceAccount")
			without, with := presetsOf(f, server.Client, server.Dynamic), presetsOf(f, f.ClientSet, f.DynamicClient)
			const group = "token"
			_, err := with.client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": podPresets.GroupVersion().String(), "kind": "PodPreset", "metadata": map[string]any{"name": group},
				"spec": map[string]any{
					"selector": map[string]any{"matchLabels": map[string]any{"preset": group}},
					"env":      []any{map[string]any{"name": "OF_" + group, "value": "1"}},
					"volumes": []any{map[string]any{"name": group, "projected": map[string]any{"sources": []any{
						map[string]any{"serviceAccountToken": map[string]any{"path": group}}}}}},
					"volumeMounts": []any{map[string]any{"name": group, "mountPath": "/token"}},
				},
			}}, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			with.awaitInjected(ctx, group)
			named := gatedFor("names-one", group)
			named.Spec.ServiceAccountName = "default"
			gomega.Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				pod, err := without.pods.CoreV1().Pods(f.Namespace.Name).Create(ctx, named, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return pod.Annotations, err
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.HaveKey(presetKey+group), "a pod that names a service account, from the server without the plugin")
			gomega.Expect(with.pod(ctx, "gets-one", group).Annotations).To(gomega.HaveKey(presetKey + group))

			pod := without.pod(ctx, "has-none", group)
			gomega.Expect(pod.Spec.ServiceAccountName).To(gomega.BeEmpty())
			gomega.Expect(pod.Spec.Volumes).To(gomega.BeEmpty())
			gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
			gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(presetKey + group))
			gomega.Eventually(ctx, func(ctx context.Context) string {
				return pods.EventsAndStatus(ctx, f, pod.Name)
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.ContainSubstring(
				"Conflict on pod preset. Volume token has a token of a service account, and the pod names none."))
		})

		f.It("an API server that serves presets without the plugin warns who creates one that no pod gets it, and creates pods without it", func(ctx context.Context) {
			server, _ := nodes.StartChangedAPIServer(ctx, f, nil, "--enable-admission-plugins=NodeRestriction")
			without, with := presetsOf(f, server.Client, server.Dynamic), presetsOf(f, f.ClientSet, f.DynamicClient)
			const off = "the admission plugin PodPreset is off, see --enable-admission-plugins of the API server"
			create := func(p presets, name string) []string {
				preset, err := presetFor(name, "group", "1").MarshalJSON()
				framework.ExpectNoError(err)
				path := fmt.Sprintf("/apis/%s/namespaces/%s/%s", podPresets.GroupVersion(), f.Namespace.Name, podPresets.Resource)
				result := p.pods.CoreV1().RESTClient().Post().AbsPath(path).Body(preset).Do(ctx)
				framework.ExpectNoError(result.Error())
				var warnings []string
				for _, warning := range result.Warnings() {
					warnings = append(warnings, warning.Text)
				}
				return warnings
			}
			gomega.Expect(create(with, "with")).To(gomega.BeEmpty())
			gomega.Expect(create(without, "without")).To(gomega.ConsistOf(gomega.ContainSubstring(off)))

			with.awaitInjected(ctx, "group")
			gomega.Expect(without.pod(ctx, "plain", "group").Spec.Containers[0].Env).To(gomega.BeEmpty())
		})

		f.It("the audit log names the presets that a pod did not get, and why, without a value", func(ctx context.Context) {
			const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- {level: Metadata, resources: [{group: '', resources: [pods]}]}\n- {level: None}"
			server, node := nodes.StartChangedAPIServer(ctx, f, map[string]string{"policy.yaml": policy},
				"--audit-policy-file="+nodes.ServerFolder+"/policy.yaml", "--audit-log-path="+nodes.ServerFolder+"/audit.log")
			p := presetsOf(f, server.Client, server.Dynamic)
			const group = "audited"
			// Values that nothing else has.
			const ofPreset, ofPod, ofConfigMap = "hidden-of-preset", "hidden-of-pod", "hidden-of-configmap"
			for _, name := range []string{"fits", "by-env", "by-env-from"} {
				p.createWith(ctx, name, group, ofPreset)
			}
			_, err := p.pods.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"OF_by-env-from": ofConfigMap}}, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			gomega.Eventually(ctx, func(ctx context.Context) ([]v1.EnvVar, error) {
				pod, err := p.pods.CoreV1().Pods(f.Namespace.Name).Create(ctx, gatedFor("probe", group), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return pod.Spec.Containers[0].Env, err
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.HaveLen(3), "the admission plugin to know all three presets")

			pod := gatedFor("website", group)
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "OF_by-env", Value: ofPod}}
			pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
			pod, err = p.pods.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(pod.Annotations).To(gomega.HaveKey(presetKey + "fits"))

			var log string
			var said map[string]string
			gomega.Eventually(ctx, func(ctx context.Context) (map[string]string, error) {
				log = node.Run(ctx, "cat "+nodes.ServerFolder+"/audit.log")
				said, err = auditedOf(log, pod)
				return said, err
			}).WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.BeNil(), "the creation of the pod in the audit log")
			const conflict = "podpreset.admission.kubernetes.io/conflict-"
			maps.DeleteFunc(said, func(key, _ string) bool { return !strings.HasPrefix(key, "podpreset.") })
			gomega.Expect(said).To(gomega.Equal(map[string]string{
				conflict + "by-env":      "Duplicate env OF_by-env",
				conflict + "by-env-from": "Duplicate env OF_by-env-from, which envFrom ConfigMap settings sets too",
			}))
			for _, value := range []string{ofPreset, ofPod, ofConfigMap} {
				gomega.Expect(strings.Contains(log, value)).To(gomega.BeFalse(), "a value is in the audit log: %s", value)
			}
		})

		f.It("pods created in the first second of an API server that starts with 1,000 presets get all that match", framework.WithSlow(), func(ctx context.Context) {
			const groups, perGroup = 100, 10
			node := controlPlane(ctx, f)
			config := *f.ClientConfig()
			config.QPS = -1
			fast, err := dynamic.NewForConfig(&config)
			framework.ExpectNoError(err)
			client, err := kubernetes.NewForConfig(&config)
			framework.ExpectNoError(err)
			p := presetsOf(f, client, fast)
			for i := range groups * perGroup {
				p.createFor(ctx, fmt.Sprintf("preset-%d", i), fmt.Sprint(i%groups))
			}
			p.awaitInjected(ctx, fmt.Sprint(groups-1))

			ginkgo.By("creating pods all the time, while the API server is restarted")
			creating, stop := context.WithCancel(ctx)
			defer stop()
			var mu sync.Mutex
			var refused time.Time // the last time that there was no API server
			var first []*v1.Pod   // created since
			var workers sync.WaitGroup
			for worker := range 4 {
				workers.Go(func() {
					defer ginkgo.GinkgoRecover()
					for n := 0; creating.Err() == nil; n++ {
						group := fmt.Sprint((worker*25 + n) % groups)
						pod, err := client.CoreV1().Pods(f.Namespace.Name).Create(creating, gatedFor("", group), metav1.CreateOptions{})
						mu.Lock()
						switch {
						case err == nil:
							first = append(first, pod)
						case creating.Err() == nil:
							refused, first = time.Now(), nil
						}
						mu.Unlock()
					}
				})
			}
			node.Restart(ctx, apiServer)
			gomega.Eventually(ctx, func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Since(refused)
			}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeNumerically(">", time.Second))
			stop()
			workers.Wait()
			gomega.Expect(refused.IsZero()).To(gomega.BeFalse(), "nothing was refused while the API server was restarted")
			gomega.Expect(first).NotTo(gomega.BeEmpty())
			framework.Logf("%d pods were created since the API server was back", len(first))
			for _, pod := range first {
				gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.HaveLen(perGroup), "%s, of group %s, created at %s", pod.Name, pod.Labels["preset"], pod.CreationTimestamp)
			}
		})
	})

// auditedOf finds the event of the creation of pod in an audit log, and returns its
// annotations; nil if the log does not have it.
func auditedOf(log string, pod *v1.Pod) (map[string]string, error) {
	for line := range strings.Lines(log) {
		var event struct {
			Verb        string
			ObjectRef   struct{ Resource, Namespace, Name string }
			Annotations map[string]string
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			return nil, fmt.Errorf("the audit log: %w: %s", err, line)
		}
		if event.Verb == "create" && event.ObjectRef.Resource == "pods" && event.ObjectRef.Namespace == pod.Namespace &&
			event.ObjectRef.Name == pod.Name {
			return event.Annotations, nil
		}
	}
	return nil, nil
}

// presets are those of a namespace, through one API server.
type presets struct {
	f      *framework.Framework
	pods   kubernetes.Interface
	client dynamic.ResourceInterface
}

func presetsOf(f *framework.Framework, client kubernetes.Interface, dynamic dynamic.Interface) presets {
	return presets{f, client, dynamic.Resource(podPresets).Namespace(f.Namespace.Name)}
}

// create makes a preset for the pods that gatedFor makes for its name.
func (p presets) create(ctx context.Context, name string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return p.createFor(ctx, name, name)
}

func (p presets) createFor(ctx context.Context, name, group string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	return p.createWith(ctx, name, group, "1")
}

func (p presets) createWith(ctx context.Context, name, group, value string) *unstructured.Unstructured {
	ginkgo.GinkgoHelper()
	made, err := p.client.Create(ctx, presetFor(name, group, value), metav1.CreateOptions{})
	framework.ExpectNoError(err)
	return made
}

// presetFor is a preset with one variable for the pods that gatedFor makes for group.
func presetFor(name, group, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": podPresets.GroupVersion().String(), "kind": "PodPreset", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"preset": group}},
			"env":      []any{map[string]any{"name": "OF_" + name, "value": value}},
		},
	}}
}

// awaitInjected waits until the admission plugin knows the preset of a group that was made
// last: it watches.
func (p presets) awaitInjected(ctx context.Context, group string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) ([]v1.EnvVar, error) {
		pod, err := p.pods.CoreV1().Pods(p.f.Namespace.Name).Create(ctx, gatedFor("probe", group), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return nil, err
		}
		return pod.Spec.Containers[0].Env, nil
	}).WithTimeout(patience).WithPolling(poll).ShouldNot(gomega.BeEmpty(), "group %s", group)
}

// pod creates a pod that the presets of group match.
func (p presets) pod(ctx context.Context, name, group string) *v1.Pod {
	ginkgo.GinkgoHelper()
	pod, err := p.pods.CoreV1().Pods(p.f.Namespace.Name).Create(ctx, gatedFor(name, group), metav1.CreateOptions{})
	framework.ExpectNoError(err)
	return pod
}

// gatedFor is a pod that no scheduler takes, and that the presets of group match. Its name is
// generated if it is empty.
func gatedFor(name, group string) *v1.Pod {
	pod := pods.Once(name, pods.Dumps(dumps))
	if name == "" {
		pod.GenerateName = "pod-"
	}
	pod.Labels = map[string]string{"preset": group}
	pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "podenv.dev/never"}}
	pods.Quick(&pod.Spec)
	return pod
}
