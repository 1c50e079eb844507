package envfiles

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/components"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
	"podenv.dev/test/images"
)

// reader is a container, and what it is to read, of which its user has no permission.
type reader struct {
	script string        // changes the file, as root
	path   string        // of the file; config.env if empty
	image  string        // of the container; images.Envdump if empty
	user   *int64        // runAsUser of the container
	group  *int64        // runAsGroup of the container
	pod    func(*v1.Pod) // what the pod is otherwise; nil: nothing
	says   []string      // in the event, beside the names
	fix    string        // gives the permission, as root
}

// unreadableBy are entries of a table whose parameter is a file that the container's user
// may not read, called as what makes that user.
var unreadableBy = []ginkgo.TableEntry{
	ginkgo.Entry("the container's runAsUser", reader{
		script: "chmod 600 config.env",
		user:   ptr.To(int64(1000)),
		fix:    "chown 1000 config.env",
	}),
	ginkgo.Entry("the pod's runAsUser", reader{
		script: "chmod 600 config.env",
		pod:    func(pod *v1.Pod) { pod.Spec.SecurityContext.RunAsUser = ptr.To(int64(1000)) },
		fix:    "chmod go+r config.env", // its group is not known: it may be the file's
	}),
	ginkgo.Entry("the container's runAsGroup", reader{
		script: "chgrp 2000 config.env; chmod 640 config.env",
		user:   ptr.To(int64(1000)),
		group:  ptr.To(int64(3000)),
		fix:    "chgrp 3000 config.env",
	}),
	ginkgo.Entry("the pod's fsGroup", reader{
		script: "chmod 600 config.env", // of group 4000, as the volume
		user:   ptr.To(int64(1000)),
		pod:    func(pod *v1.Pod) { pod.Spec.SecurityContext.FSGroup = ptr.To(int64(4000)) },
		fix:    "chmod g+r config.env",
	}),
	ginkgo.Entry("the pod's supplementalGroups", reader{
		script: "chgrp 5001 config.env; chmod 640 config.env",
		user:   ptr.To(int64(1000)),
		pod:    func(pod *v1.Pod) { pod.Spec.SecurityContext.SupplementalGroups = []int64{5000} },
		fix:    "chgrp 5000 config.env",
	}),
	ginkgo.Entry("the image, a number", reader{
		script: "chmod 600 config.env",
		image:  images.EnvdumpNonroot,
		fix:    "chown 65532 config.env",
	}),
	ginkgo.Entry("the image, with a group, of which the kubelet sees nothing", reader{
		script: "chgrp 2000 config.env; chmod 640 config.env",
		image:  images.EnvdumpGroup,
		says:   []string{"the primary group, which is not known; set runAsGroup"},
		fix:    "chown 1000 config.env",
	}),
	ginkgo.Entry("the image, a name, which the kubelet cannot know", reader{
		script: "chown 65534:65534 config.env; chmod 660 config.env",
		image:  images.EnvdumpNamed,
		says:   []string{"runAsUser"},
		fix:    "chmod o+r config.env",
	}),
}

// lackingPermission are such entries, called as the permission that lacks.
var lackingPermission = []ginkgo.TableEntry{
	ginkgo.Entry("to search a directory on the way", reader{
		script: "chmod 700 a",
		path:   "a/b/config.env",
		user:   ptr.To(int64(1000)),
		says:   []string{"director"},
		fix:    "chmod go+x a",
	}),
	ginkgo.Entry("the owner's, though all others have it", reader{
		script: "chown 1000 config.env; chmod 044 config.env",
		user:   ptr.To(int64(1000)),
		fix:    "chmod u+r config.env",
	}),
	ginkgo.Entry("the group's, though all others have it", reader{
		script: "chgrp 3000 config.env; chmod 604 config.env",
		user:   ptr.To(int64(1000)),
		group:  ptr.To(int64(3000)),
		fix:    "chmod g+r config.env",
	}),
}

// Row 7 of KEP-3721's failure table.
var _ = describeIf(ownAPI, "row 7, the container waits, an event says why, and it starts once the file is right, when its user may not read the file:", func(f *framework.Framework) {
	ginkgo.DescribeTable("it is the user of", func(ctx context.Context, r reader) { expectRefused(ctx, f, r) }, unreadableBy)

	ginkgo.DescribeTable("the permission that lacks is", func(ctx context.Context, r reader) { expectRefused(ctx, f, r) }, lackingPermission)
}, suite.Shows("KEP-3721", "7"))

var _ = describe("row 7, a container may read", func(f *framework.Framework) {
	f.It("as root, a file of mode 0 in a directory of mode 0", func(ctx context.Context) {
		pod := newPod("root-reads",
			[]v1.Container{runs("setup-envfile", "cd /data; mkdir sub; "+echo("KEY=value")+" > sub/config.env; chmod 0 sub/config.env sub")},
			pods.Dumps(consumer, from("VARIABLE", "sub/config.env", "KEY")))
		pods.RunToEnd(ctx, f, pod)

		gomega.Expect(pods.Env(ctx, f, pod.Name, consumer)).To(gomega.HaveKeyWithValue("VARIABLE", "value"))
	})

	f.It("as root of a user namespace, what another user of that namespace owns; and as another user, not what root owns", func(ctx context.Context) {
		requireUserNamespaces(ctx, f)
		plain := pods.Dumps("plain", from("VARIABLE", "plain.env", "KEY"))
		plain.SecurityContext = &v1.SecurityContext{RunAsUser: ptr.To(int64(1000))}
		pod := newPod("user-namespace",
			[]v1.Container{sidecar(`
				` + echo("KEY=value") + ` > /data/config.env; chown 1000 /data/config.env; chmod 600 /data/config.env
				` + echo("KEY=value") + ` > /data/plain.env; chmod 600 /data/plain.env`)},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")), plain)
		pod.Spec.HostUsers = ptr.To(false)
		pods.Create(ctx, f, pod)

		if components.HasUpstreamAPI(gate) { // without row 7
			gomega.Expect(pods.Env(ctx, f, pod.Name, plain.Name)).To(gomega.HaveKeyWithValue("VARIABLE", "value"))
		} else {
			pods.AwaitConfigError(ctx, f, pod.Name, plain.Name)
		}
		awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	})
}, suite.Shows("KEP-3721", "7"))

// expectRefused checks that r's container does not start until its user may read.
func expectRefused(ctx context.Context, f *framework.Framework, r reader) {
	ginkgo.GinkgoHelper()
	r, pod := r.create(ctx, f)

	event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
	expectNamed(event, "VARIABLE", r.path, "KEY")
	for _, says := range append(r.says, "user may not") {
		gomega.Expect(event.Message).To(gomega.ContainSubstring(says))
	}

	shell(ctx, f, pod.Name, "cd /data; "+r.fix)
	pods.Nudge(ctx, f, pod.Name)
	awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
}

// create creates the pod of r, and returns r with its defaults.
func (r reader) create(ctx context.Context, f *framework.Framework) (reader, *v1.Pod) {
	ginkgo.GinkgoHelper()
	if r.path == "" {
		r.path = "config.env"
	}
	container := pods.Dumps(consumer, from("VARIABLE", r.path, "KEY"))
	if r.image != "" {
		container.Image = r.image
	}
	container.SecurityContext = &v1.SecurityContext{RunAsUser: r.user, RunAsGroup: r.group}
	writer := sidecar(fmt.Sprintf("cd /data; umask 022; mkdir -p %s; %s > %s; %s", filepath.Dir(r.path), echo("KEY=value"), r.path, r.script))
	writer.SecurityContext = &v1.SecurityContext{RunAsUser: ptr.To(int64(0)), RunAsGroup: ptr.To(int64(0))}
	pod := newPod("permission", []v1.Container{writer}, container)
	pod.Spec.SecurityContext = &v1.PodSecurityContext{}
	if r.pod != nil {
		r.pod(pod)
	}
	return r, pods.Create(ctx, f, pod)
}

// userNamespaceKernel is the first kernel in which pods can have a user namespace of their
// own: it can map the owners of files in a tmpfs, where the kubelet keeps tokens and Secrets.
var userNamespaceKernel = version.MajorMinor(6, 3)

// requireUserNamespaces skips the running spec unless the runtime and the kernel of every
// node that takes pods can give a pod a user namespace.
func requireUserNamespaces(ctx context.Context, f *framework.Framework) {
	ginkgo.GinkgoHelper()
	nodes, err := f.ClientSet.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	framework.ExpectNoError(err)
	for _, node := range nodes.Items {
		if !components.TakesPods(node) {
			continue
		}
		if !supportsUserNamespaces(node) {
			ginkgo.Skip(fmt.Sprintf("the container runtime of node %s, %s, does not report user namespaces in status.runtimeHandlers",
				node.Name, node.Status.NodeInfo.ContainerRuntimeVersion))
		}
		kernel, err := version.ParseGeneric(node.Status.NodeInfo.KernelVersion)
		framework.ExpectNoError(err)
		if kernel.LessThan(userNamespaceKernel) {
			ginkgo.Skip(fmt.Sprintf("the kernel of node %s, %s, is older than %s, which user namespaces of pods need",
				node.Name, node.Status.NodeInfo.KernelVersion, userNamespaceKernel))
		}
	}
}

// supportsUserNamespaces looks at the default runtime handler.
func supportsUserNamespaces(node v1.Node) bool {
	for _, handler := range node.Status.RuntimeHandlers {
		if handler.Name == "" && handler.Features != nil && ptr.Deref(handler.Features.UserNamespaces, false) {
			return true
		}
	}
	return false
}
