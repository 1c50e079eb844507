package upgrade

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

const (
	// patience is how long a workload has to become what is awaited. It covers the longest
	// back-off of a kubelet, five minutes.
	patience = 6 * time.Minute
	poll     = 500 * time.Millisecond
	volume   = "config"

	// complete has all that its containers require; incomplete lacks a key.
	complete   = "complete"
	incomplete = "incomplete"
)

// workload is two Deployments of one pod each, whose containers of every kind take
// variables from an env file.
type workload struct{ f *framework.Framework }

func newWorkload(ctx context.Context, f *framework.Framework) workload {
	ginkgo.GinkgoHelper()
	w := workload{f}
	side := pods.Dumps("sidecar", variables()...)
	side.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	side.Args = []string{"serve", ":8081"}
	w.deploy(ctx, complete, []v1.Container{setup(), pods.Dumps("init", variables()...), side}, serves("regular", variables()...))
	w.deploy(ctx, incomplete, []v1.Container{setup()}, serves("regular", from("REQUIRED", "MISSING", false)))
	return w
}

// setup is an init container that writes the env file.
func setup() v1.Container {
	return v1.Container{
		Name: "setup", Image: images.Busybox, ImagePullPolicy: v1.PullNever,
		Command:      []string{"sh", "-c", envfile.Script("/data/config.env", "KEY=value")},
		VolumeMounts: []v1.VolumeMount{{Name: volume, MountPath: "/data"}},
	}
}

// serves is a container that prints its environment and goes on running.
func serves(name string, env ...v1.EnvVar) v1.Container {
	c := pods.Dumps(name, env...)
	c.Args = []string{"serve"}
	return c
}

func variables() []v1.EnvVar {
	return []v1.EnvVar{from("REQUIRED", "KEY", false), from("OPTIONAL", "KEY", true), from("OPTIONAL_MISSING", "MISSING", true)}
}

// from is a variable taken from a key of the env file.
func from(name, key string, optional bool) v1.EnvVar {
	return envfile.Var(name, volume, "config.env", key, &optional)
}

func (w workload) deploy(ctx context.Context, name string, init []v1.Container, container v1.Container) {
	ginkgo.GinkgoHelper()
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: v1.PodSpec{
			InitContainers: init,
			Containers:     []v1.Container{container},
			Volumes:        []v1.Volume{pods.EmptyDir(volume)},
		},
	}
	pods.Quick(&template.Spec)
	_, err := w.f.ClientSet.AppsV1().Deployments(w.f.Namespace.Name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: template,
		},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// pod returns the one pod that a Deployment has, and no pod that is about to end.
func (w workload) pod(ctx context.Context, name string) (*v1.Pod, error) {
	list, err := w.f.ClientSet.CoreV1().Pods(w.f.Namespace.Name).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{"app": name}.String(),
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 || list.Items[0].DeletionTimestamp != nil {
		return nil, fmt.Errorf("Deployment %s has %d pods, or one that ends", name, len(list.Items))
	}
	return &list.Items[0], nil
}

// await returns the pod of a Deployment once its regular container is as done says.
func (w workload) await(ctx context.Context, name, what string, done func(v1.ContainerStatus) bool) *v1.Pod {
	ginkgo.GinkgoHelper()
	var pod *v1.Pod
	gomega.Eventually(ctx, func(ctx context.Context) (err error) {
		if pod, err = w.pod(ctx, name); err != nil {
			return err
		}
		if !done(pods.Status(pod, "regular")) {
			return fmt.Errorf("pod %s waits for %s: %s", pod.Name, what, framework.PrettyPrintJSON(pod.Status))
		}
		return nil
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	return pod
}

func isRunning(s v1.ContainerStatus) bool { return s.State.Running != nil }

func isRefused(s v1.ContainerStatus) bool {
	return s.State.Waiting != nil && s.State.Waiting.Reason == pods.ConfigError
}

// expect checks that the pods have what a kubelet gives.
func (w workload) expect(ctx context.Context, want given) {
	ginkgo.GinkgoHelper()
	pod := w.await(ctx, complete, "its containers to run", isRunning)
	for _, container := range []string{"init", "sidecar", "regular"} {
		w.expectEnv(ctx, pod, container, want.env)
	}
	if !want.startsIncomplete {
		w.await(ctx, incomplete, "the kubelet to refuse to start it", isRefused)
		return
	}
	pod = w.await(ctx, incomplete, "it to run", isRunning)
	w.expectEnv(ctx, pod, "regular", map[string]string{"REQUIRED": ""})
}

// expectEnv checks the variables that a container has of those that variables names.
func (w workload) expectEnv(ctx context.Context, pod *v1.Pod, container string, want map[string]string) {
	ginkgo.GinkgoHelper()
	env := pods.Env(ctx, w.f, pod.Name, container)
	have := map[string]string{}
	for _, v := range variables() {
		if value, ok := env[v.Name]; ok {
			have[v.Name] = value
		}
	}
	gomega.Expect(have).To(gomega.Equal(want), "container %s of pod %s", container, pod.Name)
}

// running are the containers that run, by pod and name, with their ID.
func (w workload) running(ctx context.Context) map[string]string {
	ginkgo.GinkgoHelper()
	list, err := w.f.ClientSet.CoreV1().Pods(w.f.Namespace.Name).List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	ids := map[string]string{}
	for _, pod := range list.Items {
		for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			if s.State.Running != nil {
				ids[pod.Name+"/"+s.Name] = s.ContainerID
			}
		}
	}
	return ids
}

// expectSame checks that each container of before runs still: the very process, and so
// with the environment that it was started with.
func (w workload) expectSame(ctx context.Context, before map[string]string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(before).NotTo(gomega.BeEmpty())
	gomega.Consistently(ctx, func(ctx context.Context) map[string]string {
		now := w.running(ctx)
		maps.DeleteFunc(now, func(container, _ string) bool { return before[container] == "" })
		return now
	}).WithTimeout(settle).WithPolling(poll).Should(gomega.Equal(before))
}

// expectOthers checks that each regular container of before has ended. Kubelets compare no
// others with what they have started.
func (w workload) expectOthers(ctx context.Context, before map[string]string) {
	ginkgo.GinkgoHelper()
	before = maps.Clone(before)
	maps.DeleteFunc(before, func(container, _ string) bool { return !strings.HasSuffix(container, "/regular") })
	gomega.Expect(before).NotTo(gomega.BeEmpty())
	gomega.Eventually(ctx, func(ctx context.Context) map[string]string {
		now := w.running(ctx)
		maps.DeleteFunc(now, func(container, id string) bool { return before[container] != id })
		return now
	}).WithTimeout(patience).WithPolling(poll).Should(gomega.BeEmpty(), "containers that run still")
}

// settle is how long a kubelet has to touch what runs, should it want to. It looks at
// every pod when it starts.
const settle = 5 * time.Second

// replace deletes all pods, and returns once others are there.
func (w workload) replace(ctx context.Context) {
	ginkgo.GinkgoHelper()
	client := w.f.ClientSet.CoreV1().Pods(w.f.Namespace.Name)
	list, err := client.List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, pod := range list.Items {
		framework.ExpectNoError(client.Delete(ctx, pod.Name, metav1.DeleteOptions{}))
	}
	for _, old := range list.Items {
		gomega.Eventually(ctx, func(ctx context.Context) error {
			pod, err := w.pod(ctx, old.Labels["app"])
			if err == nil && pod.UID == old.UID {
				err = fmt.Errorf("pod %s is still there", pod.Name)
			}
			return err
		}).WithTimeout(patience).WithPolling(poll).Should(gomega.Succeed())
	}
}
