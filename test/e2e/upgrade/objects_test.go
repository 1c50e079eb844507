package upgrade

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/expected"
	"podenv.dev/test/e2e/internal/pods"
)

// subject is what the objects of a spec use.
type subject struct {
	about, gate string
	env         func() v1.EnvVar
	// has tells whether a variable has what it is about.
	has func(v1.EnvVar) bool
	// change changes something of the variable that a template may have otherwise.
	change func(*v1.EnvVar)
	// rules are those of an API server, by what it says of the gate.
	rules map[components.GateState]rules
}

// rules are what an API server does.
type rules struct {
	creates bool // takes new objects
	shows   bool // shows what objects have that were stored with the gate on
	updates bool // takes updates of those
	loses   bool // writes them without it, whoever writes what
}

var envFileVariables = subject{
	about: "env-file", gate: expected.EnvFiles,
	env: func() v1.EnvVar { return from("A", "KEY", false) },
	has: func(env v1.EnvVar) bool { return env.ValueFrom != nil && env.ValueFrom.FileKeyRef != nil },
	change: func(env *v1.EnvVar) {
		ref := env.ValueFrom.FileKeyRef
		ref.Optional = ptr.To(!ptr.Deref(ref.Optional, false))
	},
	rules: map[components.GateState]rules{
		components.GateOn:      {creates: true, shows: true, updates: true},
		components.GateOff:     {shows: true, updates: true}, // the new object's variable has no other source
		components.GateUnknown: {loses: true},
	},
}

var specialNames = subject{
	about: "special-name", gate: expected.Relaxed,
	env:    func() v1.EnvVar { return v1.EnvVar{Name: special, Value: "1"} },
	has:    func(env v1.EnvVar) bool { return env.Name == special },
	change: func(env *v1.EnvVar) { env.Value += "1" },
	rules: map[components.GateState]rules{
		components.GateOn:  {creates: true, shows: true, updates: true},
		components.GateOff: {shows: true, updates: true},
		// A release without the gate validates what it updates as what is new.
		components.GateUnknown: {shows: true},
	},
}

// objects are pairs of a Pod and a Deployment of one name. The one is never scheduled and
// the other paused, so that only the specs write to them.
type objects struct {
	f *framework.Framework
	subject
}

// rules are those of the API server s.
func (o objects) rules(s expected.Runs) rules { return o.subject.rules[s.Gate(o.gate)] }

// named is the name of the pair that a spec calls name.
func (o objects) named(name string) string { return o.about + "-" + name }

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
	gomega.Eventually(ctx, func(ctx context.Context) (bool, error) {
		_, d, err := o.get(ctx, name)
		return err == nil && d.Status.ObservedGeneration == d.Generation && len(d.Status.Conditions) > 0, err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeTrue())
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
func (o objects) update(ctx context.Context, name string) (pod, deployment error) {
	stamp := map[string]string{"updated": time.Now().Format("150405.000")}
	pod = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		p, _, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		p.Labels, p.Spec.Containers[0].Image = stamp, otherImage(p.Spec.Containers[0].Image)
		_, err = o.f.ClientSet.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{})
		return err
	})
	deployment = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Labels = stamp
		c := &d.Spec.Template.Spec.Containers[0]
		c.Image = otherImage(c.Image)
		if o.has(c.Env[0]) {
			o.change(&c.Env[0])
		}
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	})
	return pod, deployment
}

func otherImage(image string) string {
	if image == pods.Envdump {
		return pods.EnvdumpNonroot
	}
	return pods.Envdump
}

// shown tells whether the API server shows what a pair has; it must of both or of none.
func (o objects) shown(ctx context.Context, name string) bool {
	ginkgo.GinkgoHelper()
	pod, deployment, err := o.get(ctx, name)
	framework.ExpectNoError(err)
	inPod := o.has(pod.Spec.Containers[0].Env[0])
	inTemplate := o.has(deployment.Spec.Template.Spec.Containers[0].Env[0])
	gomega.Expect(inPod).To(gomega.Equal(inTemplate), "the pod has it, as against the Deployment")
	return inPod
}

// expectCreate checks what becomes of a new pair.
func (o objects) expectCreate(ctx context.Context, s expected.Runs, name string) {
	ginkgo.GinkgoHelper()
	pod, deployment := o.tryCreate(ctx, name)
	if !o.rules(s).creates {
		expectBothInvalid(pod, deployment, s.String()+" takes a new object")
		return
	}
	framework.ExpectNoError(pod)
	framework.ExpectNoError(deployment)
	gomega.Expect(o.shown(ctx, name)).To(gomega.BeTrue())
}

// expectKept checks a pair that nobody has written to who took anything from it.
func (o objects) expectKept(ctx context.Context, s expected.Runs, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(o.shown(ctx, name)).To(gomega.Equal(o.rules(s).shows), "%s shows it", s)
	pod, deployment := o.update(ctx, name)
	if !o.rules(s).updates {
		expectBothInvalid(pod, deployment, s.String()+" takes an update")
		return
	}
	framework.ExpectNoError(pod, "%s: updating the pod", s)
	framework.ExpectNoError(deployment, "%s: updating the Deployment", s)
	gomega.Expect(o.shown(ctx, name)).To(gomega.BeTrue(), "%s: it is there after an update", s)
}

// expectLost checks a pair whose variable has lost its source: no API server brings it
// back, or takes an update of the rest.
func (o objects) expectLost(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(o.shown(ctx, name)).To(gomega.BeFalse())
	pod, deployment := o.update(ctx, name)
	expectBothInvalid(pod, deployment, "an update of what has lost its variable's source")
}

func expectBothInvalid(pod, deployment error, what string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(pod).To(gomega.Satisfy(apierrors.IsInvalid), what)
	gomega.Expect(deployment).To(gomega.Satisfy(apierrors.IsInvalid), what)
}

// writeStatus writes the status of a pair.
func (o objects) writeStatus(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	pod, deployment, err := o.get(ctx, name)
	framework.ExpectNoError(err)
	pod.Status.Message = time.Now().String()
	_, err = o.f.ClientSet.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	framework.ExpectNoError(err)
	deployment.Status.Conditions = append(deployment.Status.Conditions, appsv1.DeploymentCondition{Type: "Touched", Status: v1.ConditionTrue})
	_, err = o.f.ClientSet.AppsV1().Deployments(deployment.Namespace).UpdateStatus(ctx, deployment, metav1.UpdateOptions{})
	framework.ExpectNoError(err)
}

// delete deletes a pair, which every API server must.
func (o objects) delete(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	framework.ExpectNoError(o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Delete(ctx, o.named(name), metav1.DeleteOptions{}))
	framework.ExpectNoError(o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Delete(ctx, o.named(name), metav1.DeleteOptions{}))
}

// mend makes a pair that has lost the field whole: a Deployment takes the variable again,
// a pod, whose variables cannot be changed, has to be replaced.
func (o objects) mend(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	client := o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name)
	framework.ExpectNoError(client.Delete(ctx, o.named(name), metav1.DeleteOptions{}))
	gomega.Eventually(ctx, func(ctx context.Context) error {
		_, err := client.Create(ctx, gated(o.named(name), o.env()), metav1.CreateOptions{})
		return err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	framework.ExpectNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Env = []v1.EnvVar{o.env()}
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	}))
}
