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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/images"
)

const (
	// timeout is for each state of a pod. It covers the longest back-off of a kubelet, five
	// minutes: that of a container of the pod, or of a scheduler that ended because it lost its
	// lease while a spec restarted the API server. A pod usually needs a few seconds.
	timeout = 6 * time.Minute
	poll    = 500 * time.Millisecond
)

// Conflicts is the back-off for writes that conflict with those of controllers. After a change
// of the API server, all controllers write.
var Conflicts = wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}

// Create creates pod in f's namespace, with the settings of Quick.
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
		if err := checkPrintsAll(container); err != nil {
			return nil, err
		}
	}
	return f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
}

// printsEnv finds env and printenv as words of a shell script.
var printsEnv = regexp.MustCompile(`(^|[\s;&|(])(env|printenv)($|[\s;&|)])`)

// checkPrintsAll returns an error for a container that prints its environment through a shell
// although names may not be identifiers: the shell of Busybox drops variables with such names.
func checkPrintsAll(c v1.Container) error {
	shell := len(c.Command) > 2 && path.Base(c.Command[0]) == "sh" && printsEnv.MatchString(strings.Join(c.Command[2:], " "))
	special := len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(env v1.EnvVar) bool { return len(validation.IsCIdentifier(env.Name)) > 0 })
	if shell && special {
		return fmt.Errorf("container %s prints its environment through a shell, which drops names that are no identifiers: use the image %s", c.Name, images.Envdump)
	}
	return nil
}

// Quick makes a test pod start and end quickly: no token, no variables of services unless the
// spec asks for them, and a grace period of one second.
func Quick(spec *v1.PodSpec) {
	spec.AutomountServiceAccountToken = ptr.To(false)
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(false)
	}
	spec.TerminationGracePeriodSeconds = ptr.To(int64(1))
}

// RunToEnd creates pod and waits until it has succeeded. It fails the spec at once if the pod
// fails or a container cannot start.
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

// stuck reports whether a container waits for something that will not happen by itself.
func stuck(status v1.ContainerStatus) bool {
	return status.State.Waiting != nil && !slowCache(status.State.Waiting) && slices.Contains(
		[]string{ConfigError, "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "CreateContainerError", "RunContainerError"},
		status.State.Waiting.Reason)
}

// slowCache reports whether the kubelet has timed out, after a second, waiting for its first
// watch of a ConfigMap or Secret. The kubelet tries again.
func slowCache(waiting *v1.ContainerStateWaiting) bool {
	return strings.HasPrefix(waiting.Message, "failed to sync configmap cache: ") ||
		strings.HasPrefix(waiting.Message, "failed to sync secret cache: ")
}

// Await polls the pod name until done returns true, and returns it. After a timeout it fails the
// spec, with what it waited for and the pod's last status.
func Await(ctx context.Context, f *framework.Framework, name, what string, done func(*v1.Pod) bool) *v1.Pod {
	ginkgo.GinkgoHelper()
	var last *v1.Pod
	get := framework.GetObject(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get, name, metav1.GetOptions{})
	gomega.Eventually(ctx, get).WithTimeout(timeout).WithPolling(poll).Should(
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

// Nudge changes an annotation, so that the kubelet syncs the pod now instead of after its
// back-off of ten seconds or more. It has no effect on a mirror pod.
func Nudge(ctx context.Context, f *framework.Framework, pod string) {
	ginkgo.GinkgoHelper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"podenv.dev/nudged":%q}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsTimeout(err) { // a slow API server may have done it all the same
		framework.ExpectNoError(err, "annotate pod %s", pod)
	}
}

// Status returns the status of the container called name, of whatever kind, or an
// empty one if the pod has none yet.
func Status(pod *v1.Pod, name string) v1.ContainerStatus {
	return podutil.GetExistingContainerStatus(allStatuses(pod), name)
}

func allStatuses(pod *v1.Pod) []v1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses)
}

// ConfigError is the reason of a waiting container whose configuration, such as its
// environment, the kubelet cannot create.
const ConfigError = "CreateContainerConfigError"

// AwaitConfigError waits until the container waits with CreateContainerConfigError
// and a Warning event on it says why. It returns the event.
func AwaitConfigError(ctx context.Context, f *framework.Framework, pod, container string) *v1.Event {
	ginkgo.GinkgoHelper()
	event := awaitFailedEvent(ctx, f, pod, container)
	// The kubelet updates the status only when it next syncs the pod.
	Nudge(ctx, f, pod)
	Await(ctx, f, pod, fmt.Sprintf("container %s to wait with %s", container, ConfigError), func(pod *v1.Pod) bool {
		waiting := Status(pod, container).State.Waiting
		return waiting != nil && waiting.Reason == ConfigError
	})
	return event
}

// awaitFailedEvent waits for a Warning event that says why the container cannot start.
func awaitFailedEvent(ctx context.Context, f *framework.Framework, pod, container string) (found *v1.Event) {
	ginkgo.GinkgoHelper()
	list := framework.ListObjects(f.ClientSet.CoreV1().Events(f.Namespace.Name).List, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.name": pod, "type": v1.EventTypeWarning}.String(),
	})
	gomega.Eventually(ctx, list).WithTimeout(timeout).WithPolling(poll).Should(
		framework.MakeMatcher(func(events *v1.EventList) (func() string, error) {
			for i, event := range events.Items {
				if event.Reason == "Failed" && strings.HasSuffix(event.InvolvedObject.FieldPath, "{"+container+"}") {
					found = &events.Items[i]
					return nil, nil
				}
			}
			return func() string {
				return fmt.Sprintf("no Warning event on container %s of pod %s says why it cannot start; there are\n%s",
					container, pod, framework.PrettyPrintJSON(events.Items))
			}, nil
		}))
	return found
}

// EventsAndStatus returns all that a user sees of the pod name: its status and its events.
func EventsAndStatus(ctx context.Context, f *framework.Framework, name string) string {
	ginkgo.GinkgoHelper()
	pod, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, name, metav1.GetOptions{})
	framework.ExpectNoError(err)
	events, err := f.ClientSet.CoreV1().Events(f.Namespace.Name).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String(),
	})
	framework.ExpectNoError(err)
	return framework.PrettyPrintJSON(pod.Status) + framework.PrettyPrintJSON(events.Items)
}
