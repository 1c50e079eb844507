package envfiles

import (
	"context"

	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("a container takes from env files", func(f *framework.Framework) {
	f.It("several keys of one file, and only those that it names", func(ctx context.Context) {
		pod := newPod("several-keys",
			writes("config.env", "A=1\nB=2\nC=3\n"),
			pods.Dumps(consumer, from("A", "config.env", "A"), from("RENAMED", "config.env", "C")))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("A", "1"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("RENAMED", "3"))
		gomega.Expect(env).NotTo(gomega.HaveKey("B"))
		gomega.Expect(env).NotTo(gomega.HaveKey("C"))
	})

	f.It("one key under two names", func(ctx context.Context) {
		pod := newPod("two-names",
			writes("config.env", "A=1\n"),
			pods.Dumps(consumer, from("ONE", "config.env", "A"), from("TWO", "config.env", "A")))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("ONE", "1"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("TWO", "1"))
	})

	f.It("keys of two files, one in a folder, that define the same name", func(ctx context.Context) {
		pod := newPod("two-files",
			[]v1.Container{runs("setup-envfile", `
				`+echo("A=top")+` > /data/config.env
				mkdir /data/sub
				`+echo("A=below")+` > /data/sub/config.env`)},
			pods.Dumps(consumer, from("TOP", "config.env", "A"), from("BELOW", "sub/config.env", "A")))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("TOP", "top"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("BELOW", "below"))
	})

	f.It("a key of a file in an emptyDir that is in memory", func(ctx context.Context) {
		pod := newPod("in-memory",
			writes("config.env", "A=1\n"),
			pods.Dumps(consumer, from("A", "config.env", "A")))
		pod.Spec.Volumes[0].EmptyDir.Medium = v1.StorageMediumMemory
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Env(ctx, f, pod.Name, consumer)).To(gomega.HaveKeyWithValue("A", "1"))
	})

	f.It("values beside literal ones, which may refer to them", func(ctx context.Context) {
		pod := newPod("beside-literals",
			writes("config.env", "HOST=db\n"),
			pods.Dumps(consumer,
				from("HOST", "config.env", "HOST"),
				v1.EnvVar{Name: "URL", Value: "postgres://$(HOST):5432"}))
		pods.RunToEnd(ctx, f, pod)

		env := pods.Env(ctx, f, pod.Name, consumer)
		gomega.Expect(env).To(gomega.HaveKeyWithValue("HOST", "db"))
		gomega.Expect(env).To(gomega.HaveKeyWithValue("URL", "postgres://db:5432"))
	})

	f.It("what an earlier init container wrote, in a later init container", func(ctx context.Context) {
		pod := newPod("init-consumes",
			append(writes("config.env", "A=1\n"), pods.Dumps("second-init", from("A", "config.env", "A"))),
			pods.Dumps("main"))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Env(ctx, f, pod.Name, "second-init")).To(gomega.HaveKeyWithValue("A", "1"))
		gomega.Expect(pods.Env(ctx, f, pod.Name, "main")).NotTo(gomega.HaveKey("A"))
	})

	f.It("the file as it is at each start: a restarted container reads it again, and a changed file restarts nothing", func(ctx context.Context) {
		variable := from("A", "config.env", "A")
		steady := pods.Dumps("steady", variable)
		steady.Args = []string{"serve"}
		pod := newPod("restarted",
			[]v1.Container{sidecar(echo("A=first") + " > /data/config.env")},
			pods.Dumps(consumer, variable), steady)
		pod.Spec.RestartPolicy = v1.RestartPolicyAlways // the consumer prints, exits and is restarted
		pods.Create(ctx, f, pod)
		awaitValue(ctx, f, pod.Name, "A", "first")
		pods.Await(ctx, f, pod.Name, "the other container to run", func(now *v1.Pod) bool {
			return pods.Status(now, steady.Name).State.Running != nil
		})

		shell(ctx, f, pod.Name, echo("A=second")+" > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, pod.Name, "A", "second")

		// The kubelet has looked at the pod since the file changed.
		now, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, pod.Name, metav1.GetOptions{})
		framework.ExpectNoError(err)
		status := pods.Status(now, steady.Name)
		gomega.Expect(status.State.Running).NotTo(gomega.BeNil(), "the container that nothing restarted")
		gomega.Expect(status.RestartCount).To(gomega.BeZero())
		gomega.Expect(pods.Env(ctx, f, pod.Name, steady.Name)).To(gomega.HaveKeyWithValue("A", "first"))
	})
})

// awaitValue waits until a run of the pod's consumer saw the variable with value.
func awaitValue(ctx context.Context, f *framework.Framework, pod, name, value string) {
	pods.Await(ctx, f, pod, "a run of the container that sees "+name+"="+value, func(*v1.Pod) bool {
		text, err := pods.TryLog(ctx, f, pod, consumer)
		if err != nil {
			return false
		}
		env, err := pods.ParseEnv(text)
		return err == nil && env[name] == value
	})
}
