package envfiles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/images"
)

// The file that the writers change has one key per kilobyte. All have the same value, a or
// b: two values in one environment are a mix of two states.
const firstKey, lastKey = 10, 69

// bothStates is a shell script that leaves the states as .a and .b, 60,000 bytes each, and the
// first one in place.
func bothStates() string {
	ginkgo.GinkgoHelper()
	filler := 1000 - len(envfile.Text("K10=a\n")) - len("#\n")
	return fmt.Sprintf(`
		cd /data
		for s in a b; do
			filler=$(head -c %d /dev/zero | tr '\0' $s)
			for i in $(seq %d %d); do %s; done > .$s
		done
		cp .a config.env`, filler, firstKey, lastKey, printf("K%s=%s\n#%s\n", "$i", "$s", "$filler"))
}

// startsPerPod is how many containers of a pod start beside its writer.
const startsPerPod = 50

// writer changes config.env in a loop, between times in which the file rests in one state.
type writer struct {
	loop   string // of a shell; empty: envdump changes it through a mapping
	cpu    string // limit; empty: none
	closes bool   // it never has the file at the path open for writing
}

var _ = describe("no environment is a mix of two states of a file, and a container waits while somebody holds it open for writing, with", func(f *framework.Framework) {
	ginkgo.DescribeTable("a sidecar that", func(ctx context.Context, w writer) {
		waited := false
		for started := 0; started < nodes.Options.Starts; started += startsPerPod {
			waited = startBeside(ctx, f, w, min(startsPerPod, nodes.Options.Starts-started)) || waited
		}
		gomega.Expect(waited).To(gomega.Equal(!w.closes), "an event or the status says that somebody holds the file open for writing")
	},
		ginkgo.Entry("holds it open and overwrites all of it with one write, with little CPU", writer{cpu: "250m", loop: `
			for order in 'a b a b a b a b a b a b' 'b a b a b a b a b a b a'; do
				(exec 3<>config.env
				for s in $order; do dd if=.$s of=/proc/self/fd/3 bs=60000 count=1 conv=notrunc; done
				usleep 300000) 2> /dev/null # longer than the kubelet waits for a writer
				usleep 100000
			done`}),
		ginkgo.Entry("stalls half way through a write", writer{loop: `
			for s in a b; do
				(exec 3<>config.env
				dd if=.$s of=/proc/self/fd/3 bs=30000 count=1 conv=notrunc
				usleep 300000
				dd if=.$s of=/proc/self/fd/3 bs=30000 count=1 skip=1 seek=1 conv=notrunc) 2> /dev/null
				usleep 50000
			done`}),
		ginkgo.Entry("writes through a shared mapping, with no descriptor open", writer{}),
		ginkgo.Entry("replaces it by a rename", writer{closes: true, loop: `for s in a b; do cp .$s next; mv next config.env; done`}),
		ginkgo.Entry("truncates it and rewrites it, piece by piece", writer{loop: `
			for s in a b; do
				for file in config.env another; do # so that it rests as long as a write takes, on a busy node, too
					(for i in $(seq 0 14); do dd if=.$s bs=4000 count=1 skip=$i; usleep 20000; done) > $file 2> /dev/null
				done
			done`}),
	)
})

// startBeside starts n containers beside a writer, checks what each of them saw, and
// reports whether one of them had to wait for the writer.
func startBeside(ctx context.Context, f *framework.Framework, w writer, n int) (waited bool) {
	ginkgo.GinkgoHelper()
	var env []v1.EnvVar
	for i := firstKey; i <= lastKey; i++ {
		key := fmt.Sprintf("K%d", i)
		env = append(env, from(key, "config.env", key))
	}
	var consumers []v1.Container
	for i := range n {
		c := pods.Dumps(fmt.Sprintf("%s-%d", consumer, i), env...)
		// On a loaded node a container runtime may lose the log of a container that ends at once.
		c.Args = []string{"serve", "127.0.0.1:0"}
		consumers = append(consumers, c)
	}
	pod := newPod("", []v1.Container{runs("setup-envfile", bothStates()), w.container()}, consumers...)
	pod.GenerateName = "beside-a-writer-"
	pod = pods.Create(ctx, f, pod)
	const held = "holds the file open or mapped for writing"
	pods.Await(ctx, f, pod.Name, "all containers to run", func(now *v1.Pod) bool {
		// client-go sends 25 events of an object, and then one in five minutes: too few here.
		waited = waited || slices.ContainsFunc(now.Status.ContainerStatuses, func(status v1.ContainerStatus) bool {
			return status.State.Waiting != nil && strings.Contains(status.State.Waiting.Message, held)
		})
		pods.Nudge(ctx, f, pod.Name) // without it, a start that failed is tried again only every ten seconds
		running := 0
		for _, status := range now.Status.ContainerStatuses {
			if status.State.Terminated != nil {
				gomega.StopTrying("container "+status.Name+" has ended").Attach("status", status).Now()
			}
			if status.State.Running != nil {
				running++
			}
		}
		return running == len(consumers)
	})

	for _, c := range consumers {
		seen := map[string]bool{}
		all := pods.Env(ctx, f, pod.Name, c.Name)
		for _, variable := range env {
			seen[all[variable.Name]] = true
		}
		gomega.Expect(slices.Collect(maps.Keys(seen))).To(gomega.Or(gomega.ConsistOf("a"), gomega.ConsistOf("b")), "container %s of pod %s", c.Name, pod.Name)
	}
	shown := pods.EventsAndStatus(ctx, f, pod.Name)
	framework.ExpectNoError(f.ClientSet.CoreV1().Pods(f.Namespace.Name).Delete(ctx, pod.Name, metav1.DeleteOptions{}))
	return waited || strings.Contains(shown, held)
}

// container is the sidecar that is the writer.
func (w writer) container() v1.Container {
	c := sidecar("cd /data; (set +e; while :; do " + w.loop + "\ndone) &")
	if w.loop == "" {
		c.Image, c.Command, c.Args = images.Envdump, nil, []string{"overwrite-mapped", mount + "/config.env"}
		c.StartupProbe = nil
	}
	if w.cpu != "" {
		c.Resources.Limits = v1.ResourceList{v1.ResourceCPU: resource.MustParse(w.cpu)}
	}
	return c
}
