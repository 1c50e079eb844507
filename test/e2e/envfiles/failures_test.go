package envfiles

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

// Row 3 of KEP-3721's failure table.
var _ = describe("row 3, the container waits, an event says why, and it starts once the file is right, when", func(f *framework.Framework) {
	f.It("there is no file at the path", func(ctx context.Context) {
		pod := newPod("no-file",
			[]v1.Container{sidecar("")},
			pods.Dumps(consumer, from("VARIABLE", "sub/config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "sub/config.env", "KEY")

		shell(ctx, f, pod.Name, "mkdir /data/sub && "+echo("KEY=value")+" > /data/sub/new && mv /data/sub/new /data/sub/config.env")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	})

	f.It("the file does not define the key", func(ctx context.Context) {
		pod := newPod("no-key",
			[]v1.Container{sidecar(echo("OTHER=value") + " > /data/config.env")},
			pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "config.env", "KEY")

		shell(ctx, f, pod.Name, echo("KEY=value")+" > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, pod.Name, "VARIABLE", "value")
	})

	f.It("nothing has written to the volume", func(ctx context.Context) {
		pod := newPod("no-writer", nil, pods.Dumps(consumer, from("VARIABLE", "config.env", "KEY")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "VARIABLE", "config.env", "KEY")
	})
}, suite.Shows("KEP-3721", "3"))

// Row 5 of KEP-3721's failure table.
var _ = describe("row 5, the container waits, an event says why,", func(f *framework.Framework) {
	ginkgo.DescribeTable("and names the line, when", func(ctx context.Context, lines string, line int, args ...string) {
		expectUnparsable(ctx, f, printf(lines, args...), line)
	},
		ginkgo.Entry("a line after the wanted key is no declaration", "A=1\nno declaration\n", 2),
		ginkgo.Entry("a line before the wanted key is no declaration", "\nno declaration\nA=1\n", 2),
		ginkgo.Entry("a line has no name", "A=1\nB=2\n=3\n", 3),
		ginkgo.Entry("the file begins with a byte order mark", `\357\273\277`+"A=1\n", 1),
		ginkgo.Entry("a line is not UTF-8", "A=1\nB="+`\377`+"\n", 2),
		ginkgo.Entry("a line has a NUL byte", "A=1\nB="+`\000`+"\n", 2),
		ginkgo.Entry("a value is longer than 32 KiB", "A=1\nB=%032769d\n", 2, "0"),
	)

	f.It("and it starts once a sidecar has fixed the file", func(ctx context.Context) {
		pod := newPod("fixed",
			[]v1.Container{sidecar("echo broken > /data/config.env")},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "A", "config.env", "A")

		shell(ctx, f, pod.Name, echo("A=fixed")+" > /data/new && mv /data/new /data/config.env")
		awaitValue(ctx, f, pod.Name, "A", "fixed")
	})

	f.It("when the file is one byte over 64 KiB, and it starts at 64 KiB", func(ctx context.Context) {
		const lines = "A=1\n"
		rest := 64<<10 - len(envfile.Text(lines))
		pod := newPod("too-large",
			[]v1.Container{sidecar(fmt.Sprintf(`
				(%[1]s; head -c %[2]d /dev/zero | tr '\0' '#') > /data/config.env
				(%[1]s; head -c %[3]d /dev/zero | tr '\0' '#') > /data/right`, printf(lines), rest+1, rest))},
			pods.Dumps(consumer, from("A", "config.env", "A")))
		pods.Create(ctx, f, pod)
		expectNamed(pods.AwaitConfigError(ctx, f, pod.Name, consumer), "A", "config.env", "A")

		shell(ctx, f, pod.Name, "mv /data/right /data/config.env")
		awaitValue(ctx, f, pod.Name, "A", "1")
	})
}, suite.Shows("KEP-3721", "5"))

// What only one of the two forms has.
var _ = describeIf(plainForm, "row 5, the container waits, an event says why,", func(f *framework.Framework) {
	f.It("and names the line, when a joined line meets the end of the file", func(ctx context.Context) {
		expectUnparsable(ctx, f, `printf 'A=1\nB=2 \\\n'`, 2)
	})
}, suite.Shows("KEP-3721", "5"))

var _ = describeIf(quotedForm, "row 5, the container waits, an event says why,", func(f *framework.Framework) {
	ginkgo.DescribeTable("and names the line, when", func(ctx context.Context, lines string, line int) {
		expectUnparsable(ctx, f, `printf "`+lines+`"`, line)
	},
		ginkgo.Entry("a value has no quotes, as older minors have it", "A='1'\nB=2\n", 2),
		ginkgo.Entry("a value is in double quotes", "A='1'\nB="+`\"2\"`+"\n", 2),
		ginkgo.Entry("nothing ends a value", "A='1'\nB='2\nC=3\n", 2),
		ginkgo.Entry("text follows the quote that ends a value", "A='1'\nB='2'3\n", 2),
		ginkgo.Entry("white space precedes the equals sign", "A='1'\nB ='2'\n", 2),
		ginkgo.Entry("a line after a value of three lines is no declaration", "A='1\n2\n3'\nno declaration\n", 4),
	)
}, suite.Shows("KEP-3721", "5"))

// expectUnparsable checks that a container waits for a file with what command, of a shell,
// prints, and that the event names the line.
func expectUnparsable(ctx context.Context, f *framework.Framework, command string, line int) {
	ginkgo.GinkgoHelper()
	pod := newPod("unparsable",
		[]v1.Container{runs("setup-envfile", command+" > /data/config.env")},
		pods.Dumps(consumer, from("VARIABLE", "config.env", "A")))
	pods.Create(ctx, f, pod)

	event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
	expectNamed(event, "VARIABLE", "config.env", "A")
	gomega.Expect(event.Message).To(gomega.MatchRegexp(`\bline %d\b`, line))
}

// expectNamed checks that event names what a user needs in order to fix the file,
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
