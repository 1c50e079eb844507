package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

// hugePath does not fit into the corpus.
var hugePath = strings.Repeat("x/", 400_000) + "x"

// impossiblePaths are entries of a table whose parameter is a path that no node can have.
var impossiblePaths = []ginkgo.TableEntry{
	ginkgo.Entry("one that ends in a slash", "config.env/"),
	ginkgo.Entry("800 KB", hugePath),
	ginkgo.Entry("4097 bytes", strings.Repeat("x/", 2048)+"x"),
	ginkgo.Entry("an element of 256 bytes", "dir/"+strings.Repeat("x", 256)),
	ginkgo.Entry("a NUL byte", "config\x00.env"),
}

var _ = describeIf(ownAPI, "the API server", func(f *framework.Framework) {
	f.It("refuses a path of 800 KB, and shows the start of it only", func(ctx context.Context) {
		_, err := pods.TryCreate(ctx, f, newPod("out-of-bounds", nil, pods.Dumps(consumer, from("A", hugePath, "A"))))

		expectInvalid(err, fileKeyRef+".path")
		gomega.Expect(len(err.Error())).To(gomega.BeNumerically("<", 2048), "bytes of the message")
	})
})

var _ = describe("the API server", func(f *framework.Framework) {
	f.It("stores that a reference is not optional, as v1.34 does", func(ctx context.Context) {
		variable := from("A", "config.env", "A")
		variable.ValueFrom.FileKeyRef.Optional = nil
		pod := unscheduled(newPod("", nil, pods.Dumps(consumer, variable)))
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		labels := map[string]string{"app.kubernetes.io/name": "defaulted"}
		set, err := f.ClientSet.AppsV1().DaemonSets(f.Namespace.Name).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "defaulted"},
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
			},
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		gomega.Expect(set.Spec.Template.Spec.Containers[0].Env[0].ValueFrom.FileKeyRef.Optional).To(gomega.Equal(ptr.To(false)))
	})
})

var _ = describe("a message shows the start of a long path only, and", func(f *framework.Framework) {
	f.It("the container waits as with any file that is missing", func(ctx context.Context) {
		path := strings.Repeat("dir/", 1000) + "config.env"
		pod := newPod("long-path", nil, pods.Dumps(consumer, from("A", path, "A")))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		gomega.Expect(event.Message).To(gomega.ContainSubstring(path[:253] + "..."))
		gomega.Expect(len(event.Message)).To(gomega.BeNumerically("<", 1024))
	})
})

var _ = describe("while a process can write to the file the container waits, and starts once it cannot, where the process", func(f *framework.Framework) {
	for what, script := range map[string]string{
		"holds the file open": "( exec 3>> /data/config.env; while [ ! -e /data/done ]; do usleep 100000; done ) &",
	} {
		f.It(what, func(ctx context.Context) {
			pod := newPod("held", []v1.Container{sidecar(echo("KEY=value") + " > /data/config.env; " + script)}, pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
			pods.Create(ctx, f, pod)
			event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
			expectNamed(event, "VARIABLE", "config.env", "KEY")
			gomega.Expect(event.Message).To(gomega.ContainSubstring("holds the file open or mapped for writing"))

			shell(ctx, f, pod.Name, "touch /data/done")
			awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
		})
	}
})

var _ = describe("a value that is a word of a command", func(f *framework.Framework) {
	f.It("shows as the pod has it where the runtime cannot run it", func(ctx context.Context) {
		const secret = "xyzzy-plugh-hunter2"
		writeSecret(ctx, f, secret)
		app := pods.Dumps(consumer, from("A", "config.env", "A"))
		app.Command = []string{"$(A)"}
		pod := newPod("command", []v1.Container{writesSecret("A=$LICENSE")}, app)
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		pods.Create(ctx, f, pod)

		pods.Await(ctx, f, pod.Name, "a start that failed twice", func(pod *v1.Pod) bool {
			status := pods.Status(pod, consumer)
			if status.RestartCount < 2 || status.LastTerminationState.Terminated == nil {
				return false
			}
			gomega.Expect(status.LastTerminationState.Terminated.Message).To(gomega.ContainSubstring(`exec: "$(A)"`))
			return true
		})
		shown := pods.EventsAndStatus(ctx, f, pod.Name)
		gomega.Expect(shown).To(gomega.ContainSubstring(`exec: \"$(A)\"`)) // in JSON
		for _, part := range append(strings.Split(secret, "-"), secret) {
			gomega.Expect(strings.ToLower(shown)).NotTo(gomega.ContainSubstring(part))
		}
	})
})
