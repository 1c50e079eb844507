package envfiles

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// racers is how many containers of a pod start again and again while a sidecar changes
// their file under the kubelet's hands.
const racers = 6

// The read is free of races: a check and what it is about cannot be parted.
var _ = describe("attack: whenever containers restart, the value is one that was written inside the volume, with", func(f *framework.Framework) {
	expectHealthyKubelets(f)

	f.It("a symlink that is swapped in a loop, between a file inside and one outside", func(ctx context.Context) {
		sets := raced(ctx, f, `
			`+echo(outsideKey+"=inside")+` > inside.env
			while :; do
				ln -s inside.env a; mv -f a config.env
				ln -s `+outside+` b; mv -f b config.env
			done`,
			[]v1.EnvVar{from("A", "config.env", outsideKey)}, "inside the volume")
		gomega.Expect(sets).To(gomega.HaveEach(gomega.HaveKeyWithValue("A", "inside")))
	})

	f.It("a directory on the way that is swapped in a loop, against a symlink outwards", func(ctx context.Context) {
		sets := raced(ctx, f, `
			mkdir real; `+echo(outsideKey+"=inside")+` > real/os-release; ln -s real etc
			while :; do
				ln -s real a; mv -fT a etc
				ln -s ../../../../../../../../../../etc b; mv -fT b etc
			done`,
			[]v1.EnvVar{from("A", "etc/os-release", outsideKey)}, "inside the volume")
		gomega.Expect(sets).To(gomega.HaveEach(gomega.HaveKeyWithValue("A", "inside")))
	})

	f.It("a file that is rewritten in a loop, in place and piece by piece", func(ctx context.Context) {
		// The file always has the same length: a reader that looks only at that would
		// see the first key of one writing and the last key of another.
		sets := raced(ctx, f, `
			filler=$(printf %030000d 0)
			n=0; while :; do
				n=$((n+1))
				`+printf("FIRST=%08d\n#%s\nLAST=%08d\n", "$n", "$filler", "$n")+` > next
				dd if=next of=config.env bs=4096 conv=notrunc 2> /dev/null
				usleep $((n % 5 * 20000))
			done`,
			[]v1.EnvVar{from("FIRST", "config.env", "FIRST"), from("LAST", "config.env", "LAST")}, "")
		for _, env := range sets {
			gomega.Expect(env["FIRST"]).To(gomega.MatchRegexp(`^\d{8}$`))
			gomega.Expect(env["LAST"]).To(gomega.Equal(env["FIRST"]), "both keys are of one writing")
		}
	})
})

// raced runs loop in a hostile sidecar of a pod whose containers take env, end and are
// restarted, until half of them have started twice, the logs of as many runs can be read and,
// unless says is empty, an event says why one did not start. It returns what these runs saw.
func raced(ctx context.Context, f *framework.Framework, loop string, env []v1.EnvVar, says string) []map[string]string {
	ginkgo.GinkgoHelper()
	writer := hostile("( " + loop + " ) &")
	var consumers []v1.Container
	for i := range racers {
		consumers = append(consumers, pods.Dumps(fmt.Sprintf("%s-%d", consumer, i), env...))
	}
	pod := newPod("raced", []v1.Container{writer}, consumers...)
	pod.Spec.RestartPolicy = v1.RestartPolicyAlways
	pods.Create(ctx, f, pod)

	var sets []map[string]string
	gomega.Eventually(ctx, func(ctx context.Context) error {
		pods.Nudge(ctx, f, pod.Name) // without it, a start that failed is tried again only every ten seconds
		now, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		// Not all: each start that the race spoils doubles a container's back-off.
		restarted := 0
		for _, container := range consumers {
			if pods.Status(now, container.Name).RestartCount > 0 {
				restarted++
			}
		}
		if restarted < racers/2 {
			return fmt.Errorf("%d containers have started twice, want %d", restarted, racers/2)
		}
		if !strings.Contains(pods.EventsAndStatus(ctx, f, pod.Name), says) {
			return fmt.Errorf("no event says %q", says)
		}
		if sets = logged(ctx, f, pod.Name, consumers); len(sets) < racers/2 {
			return fmt.Errorf("the logs of %d runs can be read, want %d", len(sets), racers/2)
		}
		return nil
	}).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(gomega.Succeed())

	expectNothingOfTheNode(ctx, f, pod.Name)
	return sets
}

// logged returns what the last two runs of each of the containers saw, as far as they have a
// log: a run that has only begun has none yet, and one that is over for long none any more.
func logged(ctx context.Context, f *framework.Framework, pod string, containers []v1.Container) []map[string]string {
	ginkgo.GinkgoHelper()
	var sets []map[string]string
	for _, container := range containers {
		for _, previous := range []bool{false, true} {
			text, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).GetLogs(pod,
				&v1.PodLogOptions{Container: container.Name, Previous: previous}).DoRaw(ctx)
			if err != nil || !strings.HasPrefix(string(text), "{") {
				continue
			}
			set, err := pods.ParseEnv(string(text))
			framework.ExpectNoError(err)
			sets = append(sets, set)
		}
	}
	return sets
}
