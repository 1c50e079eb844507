package envfiles

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
)

// attack is what a hostile sidecar makes of the file that the kubelet is to read.
type attack struct {
	script string // run as root, in the volume
	path   string // of the file; config.env if empty
	key    string // what the file has if the kubelet opens what it must not; KEY if empty
	says   string // in the event
}

// Every systemd node has this file, and it looks like an env file: a kubelet that can
// be led to it would set the variable.
const (
	outside    = "/etc/os-release"
	outsideKey = "ID"
)

// The read is confined, never blocks and takes regular files only.
var _ = describe("attack: the container waits, an event says why, the kubelet stays well and starts it once the file is right, when", func(f *framework.Framework) {
	expectHealthyKubelets(f)

	const leaves, notRegular = "inside the volume", "regular file"
	ginkgo.DescribeTable("the file is", func(ctx context.Context, a attack) {
		if a.path == "" {
			a.path = "config.env"
		}
		if a.key == "" {
			a.key = "KEY"
		}
		pod := newPod("hostile", []v1.Container{hostile(a.script)}, pods.Dumps(consumer, from("VARIABLE", a.path, a.key)))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		gomega.Expect(event.Message).To(gomega.ContainSubstring(a.says))
		expectNothingOfTheNode(ctx, f, pod.Name)

		shell(ctx, f, pod.Name, "rm -rf /data/* && mkdir -p /data/$(dirname "+a.path+")")
		replace(ctx, f, pod.Name, a.path, a.key+"=right")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "right")
	},
		ginkgo.Entry("an absolute symlink to a file of the node",
			attack{script: "ln -s " + outside + " config.env", key: outsideKey, says: leaves}),
		ginkgo.Entry("an absolute symlink to the node's passwords",
			attack{script: "ln -s /etc/shadow config.env", says: leaves}),
		ginkgo.Entry("an absolute symlink to the kubelet's own files",
			attack{script: "ln -s /var/lib/kubelet/kubeadm-flags.env config.env", key: "KUBELET_KUBEADM_ARGS", says: leaves}),
		ginkgo.Entry("a symlink through a chain of ..",
			attack{script: "ln -s ../../../../../../../../../../.." + outside + " config.env", key: outsideKey, says: leaves}),
		ginkgo.Entry("a file below a symlink through a chain of ..",
			attack{script: "ln -s ../../../../../../../../../.. up", path: "up" + outside, key: outsideKey, says: leaves}),
		ginkgo.Entry("a symlink through a magic link of /proc",
			attack{script: "ln -s /proc/self/root" + outside + " config.env", key: outsideKey, says: leaves}),
		ginkgo.Entry("a symlink to itself",
			attack{script: "ln -s config.env config.env", says: "symbolic links"}),
		ginkgo.Entry("at the end of 39 symlinks, each with hundreds of steps back and forth",
			attack{path: "l0", says: "l0", script: `
				mkdir d; t=; i=0; while [ $i -lt 800 ]; do t=$t/../d; i=$((i+1)); done
				i=0; while [ $i -lt 38 ]; do ln -s l$((i+1))$t l$i; i=$((i+1)); done; ln -s d l38`}),
		ginkgo.Entry("a FIFO that nobody writes to",
			attack{script: "mkfifo config.env", says: notRegular}),
		ginkgo.Entry("a symlink to a FIFO",
			attack{script: "mkfifo fifo; ln -s fifo config.env", says: notRegular}),
		ginkgo.Entry("a device without an end",
			attack{script: "mknod config.env c 1 5", says: notRegular}), // /dev/zero
		ginkgo.Entry("a socket",
			// syslogd listens where /dev/log points, instead of the file that is there, but
			// only once it has gone to the background.
			attack{script: "touch config.env; ln -sf /data/config.env /dev/log; syslogd; until test -S config.env; do usleep 10000; done", says: notRegular}),
		ginkgo.Entry("a directory",
			attack{script: "mkdir config.env", says: notRegular}),
		ginkgo.Entry("10 GB without content",
			attack{script: "truncate -s 10G config.env", says: "64 KiB"}),
	)
})

var _ = describe("attack: the container gets the right value, and the kubelet stays well, with", func(f *framework.Framework) {
	expectHealthyKubelets(f)

	f.It("a deep path", func(ctx context.Context) {
		// 500 directories, of which one step is a symlink.
		pod := newPod("deep",
			[]v1.Container{hostile(`
				i=0; while [ $i -lt 500 ]; do mkdir d; cd d; i=$((i+1)); done
				` + echo("KEY=deep") + ` > config.env; ln -s . link`)},
			pods.Dumps(consumer, from("VARIABLE", strings.Repeat("d/", 500)+"link/config.env", "KEY")))
		pods.Create(ctx, f, pod)

		awaitValue(ctx, f, pod.Name, "VARIABLE", "deep")
	})

	f.It("100,000 files beside it", func(ctx context.Context) {
		pod := newPod("crowded",
			[]v1.Container{hostile("seq 100000 | xargs touch; " + echo("KEY=found") + " > config.env")},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
		pods.Create(ctx, f, pod)

		awaitValue(ctx, f, pod.Name, "VARIABLE", "found")
	})
})

// hostile is a sidecar that runs script in the volume, as root and with what a
// container may do by default. Not every runtime gives it mknod by itself.
func hostile(script string) v1.Container {
	container := sidecar("cd " + mount + "; " + script)
	container.SecurityContext = &v1.SecurityContext{Capabilities: &v1.Capabilities{Add: []v1.Capability{"MKNOD"}}}
	return container
}

// expectHealthyKubelets checks around each spec that the kubelets are the same
// processes as before it, and well.
func expectHealthyKubelets(f *framework.Framework) {
	ginkgo.BeforeEach(func(ctx context.Context) {
		nodes, err := f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		for _, node := range nodes.Items {
			if !components.TakesPods(node) {
				continue
			}
			start, err := components.KubeletStart(ctx, f.ClientSet, node.Name)
			framework.ExpectNoError(err)
			ginkgo.DeferCleanup(func(ctx context.Context) {
				framework.ExpectNoError(components.KubeletHealth(ctx, f.ClientSet, node.Name, start))
			})
		}
	})
}

// expectNothingOfTheNode checks that what a user sees of the pod has nothing of
// the files of the node that the attacks are after.
func expectNothingOfTheNode(ctx context.Context, f *framework.Framework, pod string) {
	ginkgo.GinkgoHelper()
	shown := pods.EventsAndStatus(ctx, f, pod)
	for _, content := range []string{
		"PRETTY_NAME", "VERSION_CODENAME", "debian", // of /etc/os-release
		"root:", "daemon:", // of /etc/shadow
		"--container-runtime", "--node-ip", // of kubeadm-flags.env
		"/var/lib/kubelet", "kubernetes.io~empty-dir",
	} {
		gomega.Expect(shown).NotTo(gomega.ContainSubstring(content))
	}
}
