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
	"k8s.io/kubernetes/test/e2e/framework"
	admissionapi "k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
)

// The controllers of DaemonSets and StatefulSets keep each template in a ControllerRevision,
// and replace all pods when the template is not, byte for byte, what the newest one has. What
// an API server defaults in a template that another one has stored is such a difference.
var _ = framework.SIGDescribe("node")("EnvFiles", framework.WithFeature(feature), framework.WithLabel("FeatureGate:"+gate),
	framework.WithSerial(), framework.WithDisruptive(), framework.WithSlow(), "when the control plane goes on to the stock release of the next minor,", func() {
		ginkgo.BeforeEach(nodes.RequirePodenv)
		f := framework.NewDefaultFramework("revisions")
		f.NamespacePodSecurityLevel = admissionapi.LevelBaseline

		f.It("DaemonSets and StatefulSets with fileKeyRef keep the templates in their revisions, and their pods, and what it stored can be updated after going back", func(ctx context.Context) {
			newer := requireNewer(ctx)
			node := controlPlane(ctx, f)
			refreshControllers(ctx, f)
			s := sets{f}
			s.create(ctx)
			s.settle(ctx)
			templates, running := s.templates(ctx), s.pods(ctx)
			gomega.Expect(templates).To(gomega.HaveLen(2), "one of each set")

			for _, component := range []string{apiServer, "kube-controller-manager"} {
				node.Swap(ctx, component, "stock:"+newer)
				gomega.Expect(node.Version(ctx, component)).To(gomega.HavePrefix(newer + "."))
			}
			state, err := components.GateAt(ctx, f.ClientSet, gate, components.APIServerMetrics)
			framework.ExpectNoError(err)
			gomega.Expect(state).To(gomega.Equal(featuregates.GateOn), "the gate of the API server")

			ginkgo.By("changing what is no part of the template, and waiting until the controllers have seen it")
			s.touch(ctx)
			s.settle(ctx)
			gomega.Expect(s.templates(ctx)).To(gomega.Equal(templates))
			gomega.Expect(s.pods(ctx)).To(gomega.Equal(running))

			ginkgo.By("storing a pod that only an API server of v1.34 on accepts, and going back")
			pod := pods.Once("newer", pods.Dumps("main",
				envfile.Var("A", volume, "/config.env", "KEY", nil), envfile.Var("B", volume, "config.env", strings.Repeat("K", 129), nil)))
			pod.Spec.SchedulerName, pod.Spec.Volumes = "nobody", []v1.Volume{pods.EmptyDir(volume)}
			pods.Create(ctx, f, pod)
			node.Undo(ctx)
			_, err = f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, pod.Name, types.MergePatchType, []byte(`{"metadata": {"labels": {"changed": "yes"}}}`), metav1.PatchOptions{})
			framework.ExpectNoError(err, "changing what is none of the path and the key")
			if !components.AtLeast("v1.34") {
				pod.Name = "another"
				_, err = f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
				gomega.Expect(err).To(gomega.MatchError(gomega.And(gomega.ContainSubstring("fileKeyRef.path"), gomega.ContainSubstring("fileKeyRef.key"))))
			}
		})
	})

// requireNewer returns the next minor, and skips the spec where it has no release here, or
// one that does not know the field.
func requireNewer(ctx context.Context) string {
	ginkgo.GinkgoHelper()
	components.RequireGate(ctx, gate)
	if len(nodes.Options.Newer) == 0 {
		ginkgo.Skip("patches/ has no release of the minor after " + nodes.Options.Minor)
	}
	newer := nodes.Options.Newer[0]
	if (featuregates.Runs{Build: featuregates.Stock, Minor: newer}).Gate(gate) == featuregates.GateUnknown {
		ginkgo.Skip("stock " + newer + " does not know fileKeyRef")
	}
	return newer
}

// sets are a DaemonSet and a StatefulSet whose containers take a variable from an env file,
// and do not say whether it is optional.
type sets struct{ f *framework.Framework }

const setName = "revised"

// setsApart returns sets in a namespace of their own, beside that of f.
func setsApart(ctx context.Context, f *framework.Framework) sets {
	ginkgo.GinkgoHelper()
	namespace, err := f.CreateNamespace(ctx, "sets", nil)
	framework.ExpectNoError(err)
	return sets{&framework.Framework{BaseName: f.BaseName, ClientSet: f.ClientSet, Namespace: namespace, Timeouts: f.Timeouts}}
}

func (s sets) create(ctx context.Context) {
	ginkgo.GinkgoHelper()
	template := func(kind string) v1.PodTemplateSpec {
		t := v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": kind}},
			Spec: v1.PodSpec{
				InitContainers: []v1.Container{setup()},
				Containers:     []v1.Container{serves("regular", envfile.Var("A", volume, "config.env", "KEY", nil))},
				Volumes:        []v1.Volume{pods.EmptyDir(volume)},
			},
		}
		pods.Quick(&t.Spec)
		return t
	}
	meta := metav1.ObjectMeta{Name: setName}
	daemons, stateful := template("daemons"), template("stateful")
	_, err := s.f.ClientSet.AppsV1().DaemonSets(s.f.Namespace.Name).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: daemons.Labels}, Template: daemons,
	}}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	_, err = s.f.ClientSet.AppsV1().StatefulSets(s.f.Namespace.Name).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: stateful.Labels}, Template: stateful,
	}}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// touch gives both sets a new generation with the same template.
func (s sets) touch(ctx context.Context) {
	ginkgo.GinkgoHelper()
	set, err := s.f.ClientSet.AppsV1().StatefulSets(s.f.Namespace.Name).Get(ctx, setName, metav1.GetOptions{})
	framework.ExpectNoError(err)
	patch := fmt.Appendf(nil, `{"spec": {"minReadySeconds": %d}}`, set.Spec.MinReadySeconds+1)
	_, err = s.f.ClientSet.AppsV1().DaemonSets(s.f.Namespace.Name).Patch(ctx, setName, types.MergePatchType, patch, metav1.PatchOptions{})
	framework.ExpectNoError(err)
	_, err = s.f.ClientSet.AppsV1().StatefulSets(s.f.Namespace.Name).Patch(ctx, setName, types.MergePatchType, patch, metav1.PatchOptions{})
	framework.ExpectNoError(err)
}

// settle waits until the controllers have seen both sets as they are, and all pods of them
// are ready and of the newest revision.
func (s sets) settle(ctx context.Context) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) error {
		d, err := s.f.ClientSet.AppsV1().DaemonSets(s.f.Namespace.Name).Get(ctx, setName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now := d.Status; now.ObservedGeneration != d.Generation || now.DesiredNumberScheduled == 0 ||
			now.NumberAvailable != now.DesiredNumberScheduled || now.UpdatedNumberScheduled != now.DesiredNumberScheduled {
			return fmt.Errorf("the DaemonSet is not settled: %s", framework.PrettyPrintJSON(now))
		}
		st, err := s.f.ClientSet.AppsV1().StatefulSets(s.f.Namespace.Name).Get(ctx, setName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now := st.Status; now.ObservedGeneration != st.Generation || now.AvailableReplicas != 1 || now.CurrentRevision != now.UpdateRevision {
			return fmt.Errorf("the StatefulSet is not settled: %s", framework.PrettyPrintJSON(now))
		}
		return nil
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
}

// templates are the different ones that ControllerRevisions hold. From v1.34 on Kubernetes
// leaves out a creationTimestamp of null, and so makes another revision of each DaemonSet,
// whatever is in it.
func (s sets) templates(ctx context.Context) []string {
	ginkgo.GinkgoHelper()
	list, err := s.f.ClientSet.AppsV1().ControllerRevisions(s.f.Namespace.Name).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	var templates []string
	for _, revision := range list.Items {
		templates = append(templates, strings.ReplaceAll(string(revision.Data.Raw), `"creationTimestamp":null,`, ""))
	}
	slices.Sort(templates)
	return slices.Compact(templates)
}

// pods are the pods of both sets: their UIDs and how often their containers were restarted.
func (s sets) pods(ctx context.Context) map[string]string {
	ginkgo.GinkgoHelper()
	list, err := s.f.ClientSet.CoreV1().Pods(s.f.Namespace.Name).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	seen := map[string]string{}
	for _, pod := range list.Items {
		seen[pod.Name] = fmt.Sprintf("%s, restarted %d times", pod.UID, pods.Status(&pod, "regular").RestartCount)
	}
	return seen
}
