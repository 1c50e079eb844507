package pods

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"
)

const (
	// patience is how long a pod has for each thing that is awaited. It covers the longest
	// back-off of a kubelet, five minutes: that of a container of the pod, or of a scheduler
	// that lost its lease, and ended, while a spec had the API server restarted. A pod
	// usually needs a few seconds.
	patience = 6 * time.Minute
	poll     = 500 * time.Millisecond
)

// Conflicts says how often a write is tried that controllers come before. After a change of
// the API server all of them write.
var Conflicts = wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}

// Create creates pod in f's namespace, with what every test pod shares: no token, no
// variables of services unless it asks for them, and an end that is quick.
func Create(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	created, err := TryCreate(ctx, f, pod)
	framework.ExpectNoError(err, "create pod %s", pod.Name)
	return created
}

// TryCreate is Create for a pod that the API server may refuse.
func TryCreate(ctx context.Context, f *framework.Framework, pod *v1.Pod) (*v1.Pod, error) {
	pod = pod.DeepCopy()
	Quick(&pod.Spec)
	for _, container := range pod.Spec.Containers {
		if err := misleading(container); err != nil {
			return nil, err
		}
	}
	return f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
}

// printsEnv finds env and printenv as words of a shell script.
var printsEnv = regexp.MustCompile(`(^|[\s;&|(])(env|printenv)($|[\s;&|)])`)

// misleading returns an error for a container that prints its environment through a shell,
// and may have a name that is no identifier: the shell of Busybox drops such a variable,
// which the container has all the same.
func misleading(c v1.Container) error {
	shell := len(c.Command) > 2 && path.Base(c.Command[0]) == "sh" && printsEnv.MatchString(strings.Join(c.Command[2:], " "))
	special := len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(env v1.EnvVar) bool { return len(validation.IsCIdentifier(env.Name)) > 0 })
	if shell && special {
		return fmt.Errorf("container %s prints its environment through a shell, which drops names that are no identifiers: use the image %s", c.Name, Envdump)
	}
	return nil
}

// Quick gives spec what makes a test pod start and end quickly.
func Quick(spec *v1.PodSpec) {
	spec.AutomountServiceAccountToken = ptr.To(false)
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(false)
	}
	spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
}

// RunToEnd creates pod and waits until it succeeded. It fails the spec at once if a
// container of the pod cannot start or fails.
func RunToEnd(ctx context.Context, f *framework.Framework, pod *v1.Pod) *v1.Pod {
	ginkgo.GinkgoHelper()
	Create(ctx, f, pod)
	return Await(ctx, f, pod.Name, "success", func(pod *v1.Pod) bool {
		if pod.Status.Phase == v1.PodFailed {
			gomega.StopTrying("the pod failed").Attach("status", pod.Status).Now()
		}
		for _, status := range allStatuses(pod) {
			if stuck(status) {
				gomega.StopTrying(fmt.Sprintf("container %s cannot start: %s: %s",
					status.Name, status.State.Waiting.Reason, status.State.Waiting.Message)).Now()
			}
		}
		return pod.Status.Phase == v1.PodSucceeded
	})
}

// stuck reports whether a container waits for something that no pod of a suite
// brings about by itself.
func stuck(status v1.ContainerStatus) bool {
	return status.State.Waiting != nil && !slowCache(status.State.Waiting) && slices.Contains(
		[]string{ConfigError, "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "CreateContainerError", "RunContainerError"},
		status.State.Waiting.Reason)
}

// slowCache reports whether the kubelet has given up waiting, after a second, for the
// first answer of its watch of a ConfigMap or Secret. It tries again by itself.
func slowCache(waiting *v1.ContainerStateWaiting) bool {
	return strings.HasPrefix(waiting.Message, "failed to sync configmap cache: ") ||
		strings.HasPrefix(waiting.Message, "failed to sync secret cache: ")
}

// Await polls the pod called name until done says so, and returns it. The spec fails
// after a deadline, with what was awaited and the pod as it was last.
func Await(ctx context.Context, f *framework.Framework, name, what string, done func(*v1.Pod) bool) *v1.Pod {
	ginkgo.GinkgoHelper()
	var last *v1.Pod
	get := framework.GetObject(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get, name, metav1.GetOptions{})
	gomega.Eventually(ctx, get).WithTimeout(patience).WithPolling(poll).Should(
		framework.MakeMatcher(func(pod *v1.Pod) (func() string, error) {
			last = pod
			if done(pod) {
				return nil, nil
			}
			return func() string {
				return fmt.Sprintf("pod %s: still waiting for %s; its status is\n%s", name, what, framework.PrettyPrintJSON(pod.Status))
			}, nil
		}))
	return last
}

// Nudge makes the kubelet look at the pod now, as it does after every change of a pod,
// rather than at the end of its back-off of ten seconds and more. What it finds is the
// same; specs only need not wait for it. It has no effect on a mirror pod.
func Nudge(ctx context.Context, f *framework.Framework, pod string) {
	ginkgo.GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"podenv.dev/nudged":%q}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	framework.ExpectNoError(err, "annotate pod %s", pod)
}

// Status returns the status of the container called name, of whatever kind, or an
// empty one if the pod has none yet.
func Status(pod *v1.Pod, name string) v1.ContainerStatus {
	return podutil.GetExistingContainerStatus(allStatuses(pod), name)
}

func allStatuses(pod *v1.Pod) []v1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
}
