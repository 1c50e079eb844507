package upgrade

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/featuregates"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// special is a name that strict validation refuses.
const special = "Logging:Level"

// objects are pairs of a Pod and a Deployment of one name. The pod is never scheduled and
// the Deployment is paused, so that few but the specs write to them. Few is not nobody: the
// deployment controller writes the status after each change of the spec, and does so late,
// through whichever API server answers by then, if it has to reconnect.
type objects struct {
	f       *framework.Framework
	feature featuregates.State
}

// storedObjects are those of each feature whose stored objects have rules.
func storedObjects(f *framework.Framework) (all []objects) {
	ginkgo.GinkgoHelper()
	features, err := featuregates.StoredIn(nodes.Options.Minor)
	framework.ExpectNoError(err)
	for _, feature := range features {
		all = append(all, objects{f, feature})
	}
	return all
}

// objectsOf are those of the feature with a gate.
func objectsOf(f *framework.Framework, gate featuregate.Feature) objects {
	ginkgo.GinkgoHelper()
	all := storedObjects(f)
	at := slices.IndexFunc(all, func(o objects) bool { return o.feature.Name == gate })
	gomega.Expect(at).To(gomega.BeNumerically(">=", 0), "the feature %s", gate)
	return all[at]
}

// rules are those of the API server s.
func (o objects) rules(s featuregates.Runs) featuregates.Rules {
	return o.feature.Stored.Rules[s.Gate(o.feature.Name)]
}

// named is the name of the pair that a spec calls name.
func (o objects) named(name string) string {
	return strings.ToLower(string(o.feature.Name)) + "-" + name
}

// env is the variable that a pair has.
func (o objects) env() v1.EnvVar { return o.feature.Stored.Variable(volume) }

// gated is a pod that is never scheduled.
func gated(name string, env v1.EnvVar) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			SchedulingGates: []v1.PodSchedulingGate{{Name: "podenv.dev/never"}},
			InitContainers:  []v1.Container{setup()},
			Containers:      []v1.Container{pods.Dumps("regular", env)},
			Volumes:         []v1.Volume{pods.EmptyDir(volume)},
		},
	}
	pods.Quick(&pod.Spec)
	return pod
}

func (o objects) deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Paused:   true,
			Replicas: ptr.To(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       gated("", o.env()).Spec,
			},
		},
	}
}

// tryCreate makes a pair, or returns what the API server says of each.
func (o objects) tryCreate(ctx context.Context, name string) (pod, deployment error) {
	_, pod = o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Create(ctx, gated(o.named(name), o.env()), metav1.CreateOptions{})
	_, deployment = o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Create(ctx, o.deployment(o.named(name)), metav1.CreateOptions{})
	return pod, deployment
}

// create makes a pair, and waits until the controllers have nothing more to write to it.
func (o objects) create(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	pod, deployment := o.tryCreate(ctx, name)
	framework.ExpectNoError(pod)
	framework.ExpectNoError(deployment)
	o.settle(ctx, name)
}

// settle waits until the deployment controller has seen the last change of the Deployment.
func (o objects) settle(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	gomega.Eventually(ctx, func(ctx context.Context) (bool, error) {
		_, d, err := o.get(ctx, name)
		return err == nil && d.Status.ObservedGeneration == d.Generation && len(d.Status.Conditions) > 0, err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeTrue(), "the controller to see the last change of Deployment %s", o.named(name))
}

func (o objects) get(ctx context.Context, name string) (*v1.Pod, *appsv1.Deployment, error) {
	pod, err := o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Get(ctx, o.named(name), metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	deployment, err := o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Get(ctx, o.named(name), metav1.GetOptions{})
	return pod, deployment, err
}

// update changes a pair as users do: a label, the image, and for a template the variable.
func (o objects) update(ctx context.Context, name string) map[string]error {
	stamp := map[string]string{"updated": time.Now().Format("150405.000")}
	pod := retry.RetryOnConflict(pods.Conflicts, func() error {
		p, _, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		p.Labels, p.Spec.Containers[0].Image = stamp, otherImage(p.Spec.Containers[0].Image)
		_, err = o.f.ClientSet.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
		return err
	})
	deployment := retry.RetryOnConflict(pods.Conflicts, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Labels = stamp
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image = otherImage(c.Image)
		if o.feature.Stored.Uses(c.Env[0]) {
			o.feature.Stored.Change(&c.Env[0])
		}
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	return map[string]error{podKind: pod, deploymentKind: deployment}
}

func otherImage(image string) string {
	if image == images.Envdump {
		return images.EnvdumpNonroot
	}
	return images.Envdump
}

const podKind, deploymentKind = "Pod", "Deployment"

// state is what an API server shows of an object.
type state struct {
	has     bool   // what the pair is about
	version string // the resource version: every write through any API server changes it
	writers []metav1.ManagedFieldsEntry
}

// states returns the state of both objects of a pair, by kind.
func (o objects) states(ctx context.Context, name string) map[string]state {
	ginkgo.GinkgoHelper()
	pod, deployment, err := o.get(ctx, name)
	framework.ExpectNoError(err)
	return map[string]state{
		podKind:        {o.feature.Stored.Uses(pod.Spec.Containers[0].Env[0]), pod.ResourceVersion, pod.ManagedFields},
		deploymentKind: {o.feature.Stored.Uses(deployment.Spec.Template.Spec.Containers[0].Env[0]), deployment.ResourceVersion, deployment.ManagedFields},
	}
}

// lost returns which objects of a pair have lost their variable while a stock API server
// answered, given their states before. It fails the spec for an object that nobody has
// written to since, and reports who has written to the others.
func (o objects) lost(ctx context.Context, name string, before map[string]state) map[string]bool {
	ginkgo.GinkgoHelper()
	lost := map[string]bool{}
	for kind, now := range o.states(ctx, name) {
		if now.has {
			continue
		}
		lost[kind] = true
		if before[kind].has {
			gomega.Expect(now.version).NotTo(gomega.Equal(before[kind].version), "%s %s has lost its variable, and nobody has written to it", kind, o.named(name))
		}
		for _, w := range now.writers {
			ginkgo.GinkgoWriter.Printf("%s %s: %s %s %s at %s\n", kind, o.named(name), w.Manager, w.Operation, w.Subresource, w.Time)
		}
	}
	return lost
}

// expectCreate checks what happens to a new pair.
func (o objects) expectCreate(ctx context.Context, s featuregates.Runs, name string) {
	ginkgo.GinkgoHelper()
	pod, deployment := o.tryCreate(ctx, name)
	if !o.rules(s).Creates {
		for _, err := range []error{pod, deployment} {
			gomega.Expect(err).To(gomega.Satisfy(apierrors.IsInvalid), "%s takes a new object", s)
		}
		return
	}
	framework.ExpectNoError(pod)
	framework.ExpectNoError(deployment)
	o.expectShown(ctx, name, true, nil)
}

// expect checks what the API server s shows of a pair, and what it makes of an update. An
// object that has lost its variable's source does not get it back from any API server, and
// none takes an update of the rest.
func (o objects) expect(ctx context.Context, s featuregates.Runs, name string, lost map[string]bool) {
	ginkgo.GinkgoHelper()
	o.expectShown(ctx, name, o.rules(s).Shows, lost)
	for kind, err := range o.update(ctx, name) {
		if lost[kind] || !o.rules(s).Updates {
			gomega.Expect(err).To(gomega.Satisfy(apierrors.IsInvalid), "%s takes an update of the %s", s, kind)
		} else {
			framework.ExpectNoError(err, "%s: updating the %s", s, kind)
		}
	}
	o.expectShown(ctx, name, o.rules(s).Shows, lost)
}

func (o objects) expectShown(ctx context.Context, name string, shows bool, lost map[string]bool) {
	ginkgo.GinkgoHelper()
	for kind, now := range o.states(ctx, name) {
		gomega.Expect(now.has).To(gomega.Equal(shows && !lost[kind]), "%s %s has its variable", kind, o.named(name))
	}
}

// writeStatus writes the status of a pair.
func (o objects) writeStatus(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(retry.RetryOnConflict(pods.Conflicts, func() error {
		p, _, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		p.Status.Message = time.Now().String()
		_, err = o.f.ClientSet.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
		return err
	}))
	framework.ExpectNoError(retry.RetryOnConflict(pods.Conflicts, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: "Touched", Status: v1.ConditionTrue})
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		return err
	}))
}

// delete deletes a pair, which every API server must.
func (o objects) delete(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Delete(ctx, o.named(name), metav1.DeleteOptions{}))
	framework.ExpectNoError(o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Delete(ctx, o.named(name), metav1.DeleteOptions{}))
}

// repair restores a pair that has lost the field: a Deployment takes the variable again,
// a pod, whose variables cannot be changed, has to be replaced.
func (o objects) repair(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	client := o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name)
	framework.ExpectNoError(client.Delete(ctx, o.named(name), metav1.DeleteOptions{}))
	gomega.Eventually(ctx, func(ctx context.Context) error {
		_, err := client.Create(ctx, gated(o.named(name), o.env()), metav1.CreateOptions{})
		return err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	framework.ExpectNoError(retry.RetryOnConflict(pods.Conflicts, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Env = []v1.EnvVar{o.env()}
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	}))
}
