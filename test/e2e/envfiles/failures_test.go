package envfiles

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// Row 3 of KEP-3721's failure table.
var _ = describe("row 3, the container waits, an event says why, and it starts once the file is right, when", func(f *framework.Framework) {
	f.It("there is no file at the path", func(ctx context.Context) {
		pod := newPod("no-file",
			[]v1.Container{sidecar("")},
			pods.Dumps(consumer, from("VARIABLE", "sub/config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "sub/config.env", "KEY")

		shell(ctx, f, pod.Name, "mkdir /data/sub && echo KEY=value > /data/sub/new && mv /data/sub/new /data/sub/config.env")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	})

	f.It("the file does not define the key", func(ctx context.Context) {
		pod := newPod("no-key",
			[]v1.Container{sidecar("echo OTHER=value > /data/config.env")},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "config.env", "KEY")

		shell(ctx, f, pod.Name, "echo KEY=value > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	})

	f.It("nothing has written to the volume", func(ctx context.Context) {
		pod := newPod("no-writer", nil, pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "config.env", "KEY")
	})
})

// Row 5 of KEP-3721's failure table.
var _ = describe("row 5, the container waits, an event says why,", func(f *framework.Framework) {
	ginkgo.DescribeTable("and names the line, when", func(ctx context.Context, content string, line int) {
		pod := newPod("unparsable",
			[]v1.Container{runs("setup-envfile", "("+content+") > /data/config.env")},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "A")))
		pods.Create(ctx, f, pod)

		event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
		expectNamed(event, "VARIABLE", "config.env", "A")
		gomega.Expect(event.Message).To(gomega.MatchRegexp(`\bline %d\b`, line))
	},
		ginkgo.Entry("a line after the wanted key is no declaration", `printf 'A=1\nno declaration\n'`, 2),
		ginkgo.Entry("a line before the wanted key is no declaration", `printf '\nno declaration\nA=1\n'`, 2),
		ginkgo.Entry("a line has no name", `printf 'A=1\nB=2\n=3\n'`, 3),
		ginkgo.Entry("the file begins with a byte order mark", `printf '\357\273\277A=1\n'`, 1),
		ginkgo.Entry("a line is not UTF-8", `printf 'A=1\nB=\377\n'`, 2),
		ginkgo.Entry("a line has a NUL byte", `printf 'A=1\nB=\000\n'`, 2),
		ginkgo.Entry("a joined line meets the end of the file", `printf 'A=1\nB=2 \\\n'`, 2),
		ginkgo.Entry("a value is longer than 32 KiB", `printf 'A=1\nB=%032769d\n' 0`, 2),
	)

	f.It("and it starts once a sidecar has mended the file", func(ctx context.Context) {
		pod := newPod("mended",
			[]v1.Container{sidecar("echo broken > /data/config.env")},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "A", "config.env", "A")

		shell(ctx, f, pod.Name, "echo A=mended > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, pod.Name, "A", "mended")
	})

	f.It("when the file is one byte over 64 KiB, and it starts at 64 KiB", func(ctx context.Context) {
		pod := newPod("too-large",
			[]v1.Container{sidecar(`
				(echo A=1; head -c 65533 /dev/zero | tr '\0' '#') > /data/config.env # 4 + 65533 = 64 KiB + 1
				(echo A=1; head -c 65532 /dev/zero | tr '\0' '#') > /data/right`)},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "A", "config.env", "A")

		shell(ctx, f, pod.Name, "mv /data/right /data/config.env")
		awaitValue(ctx, f, pod.Name, "A", "1")
	})
})

// expectNamed checks that event names what a user needs in order to mend the file,
// and no path of the node.
func expectNamed(event *v1.Event, variable, path, key string) {
	ginkgo.GinkgoHelper()
	gomega.Expect(event.InvolvedObject.FieldPath).To(gomega.Equal("spec.containers{" + consumer + "}"))
	for what, name := range map[string]string{"container": consumer, "variable": variable, "volume": volume, "env file": path, "key": key} {
		gomega.Expect(event.Message).To(gomega.ContainSubstring("%s %q", what, name))
	}
	gomega.Expect(event.Message).NotTo(gomega.ContainSubstring("/var/lib"))
	gomega.Expect(event.Message).NotTo(gomega.ContainSubstring("kubernetes.io~empty-dir"))
}
