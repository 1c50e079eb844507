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

	"podenv.dev/test/e2e/internal/pods"
)

// objects are pairs of a Pod and a Deployment of one name that take a variable from an env
// file. The one is never scheduled and the other paused, so that only the specs write to them.
type objects struct{ f *framework.Framework }

func (o objects) pod(name string, env v1.EnvVar) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{
			SchedulingGates: []v1.PodSchedulingGate{{Name: "podenv.dev/never"}},
			InitContainers:  []v1.Container{setup()},
			Containers:      []v1.Container{pods.Dumps("regular", env)},
			Volumes:         []v1.Volume{{Name: volume, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}},
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
				Spec:       o.pod("", from("A", "KEY", false)).Spec,
			},
		},
	}
}

// tryCreate makes a pair, or returns what the API server says of each.
func (o objects) tryCreate(ctx context.Context, name string) (pod, deployment error) {
	_, pod = o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Create(ctx, o.pod(name, from("A", "KEY", false)), metav1.CreateOptions{})
	_, deployment = o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Create(ctx, o.deployment(name), metav1.CreateOptions{})
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
	pod, err := o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	deployment, err := o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
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
		if ref := c.Env[0].ValueFrom.FileKeyRef; ref != nil {
			ref.Optional = ptr.To(!ptr.Deref(ref.Optional, false))
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

// has tells whether the API server shows the field of a pair; it must of both or of none.
func (o objects) has(ctx context.Context, name string) bool {
	ginkgo.GinkgoHelper()
	pod, deployment, err := o.get(ctx, name)
	framework.ExpectNoError(err)
	inPod := pod.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef != nil
	inTemplate := deployment.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef != nil
	gomega.Expect(inPod).To(gomega.Equal(inTemplate), "the pod has the field, as against the Deployment")
	return inPod
}

// expectCreate checks what becomes of a new pair.
func (o objects) expectCreate(ctx context.Context, s server, name string) {
	ginkgo.GinkgoHelper()
	pod, deployment := o.tryCreate(ctx, name)
	if s == serverOn {
		framework.ExpectNoError(pod)
		framework.ExpectNoError(deployment)
		gomega.Expect(o.has(ctx, name)).To(gomega.BeTrue())
		return
	}
	expectBothInvalid(pod, deployment, s.name+" creates what has no other source for its variable")
}

// expectKept checks a pair that nobody has written to since it had the field.
func (o objects) expectKept(ctx context.Context, s server, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(o.has(ctx, name)).To(gomega.Equal(s != stockServer), "%s shows the field", s.name)
	pod, deployment := o.update(ctx, name)
	if s == stockServer {
		expectBothInvalid(pod, deployment, s.name+" updates what has a variable without a source")
		return
	}
	framework.ExpectNoError(pod, "%s: updating the pod", s.name)
	framework.ExpectNoError(deployment, "%s: updating the Deployment", s.name)
	gomega.Expect(o.has(ctx, name)).To(gomega.BeTrue(), "%s: the field is there after an update", s.name)
}

// expectLost checks a pair that has lost the field: no API server brings it back, or takes
// an update of the rest.
func (o objects) expectLost(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(o.has(ctx, name)).To(gomega.BeFalse())
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
	framework.ExpectNoError(o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name).Delete(ctx, name, metav1.DeleteOptions{}))
	framework.ExpectNoError(o.f.ClientSet.AppsV1().Deployments(o.f.Namespace.Name).Delete(ctx, name, metav1.DeleteOptions{}))
}

// mend makes a pair that has lost the field whole: a Deployment takes the variable again,
// a pod, whose variables cannot be changed, has to be replaced.
func (o objects) mend(ctx context.Context, name string) {
	ginkgo.GinkgoHelper()
	client := o.f.ClientSet.CoreV1().Pods(o.f.Namespace.Name)
	framework.ExpectNoError(client.Delete(ctx, name, metav1.DeleteOptions{}))
	gomega.Eventually(ctx, func(ctx context.Context) error {
		_, err := client.Create(ctx, o.pod(name, from("A", "KEY", false)), metav1.CreateOptions{})
		return err
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	framework.ExpectNoError(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		_, d, err := o.get(ctx, name)
		if err != nil {
			return err
		}
		d.Spec.Template.Spec.Containers[0].Env = []v1.EnvVar{from("A", "KEY", false)}
		_, err = o.f.ClientSet.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
		return err
	}))
}
