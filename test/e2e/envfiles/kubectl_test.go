package envfiles

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/nodes"
	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("kubectl", func(f *framework.Framework) {
	f.It("describe pod shows the volume, the path, the key and optional", func(ctx context.Context) {
		pod := unscheduled(newPod("described", nil, pods.Dumps(consumer,
			from("VARIABLE", "sub/config.env", "KEY"), optional(from("MAYBE", "config.env", "OTHER")))))
		pods.Create(ctx, f, pod)

		text := kubectl(ctx, "describe", "pod", pod.Name, "--namespace", f.Namespace.Name)
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+VARIABLE:.*'KEY'.*'sub/config\.env'.*'config'.*Optional: false$`))
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+MAYBE:.*'OTHER'.*'config\.env'.*'config'.*Optional: true$`))
	})

	f.It("explain documents fileKeyRef and each of its fields", func(ctx context.Context) {
		text := kubectl(ctx, "explain", "pod.spec.containers.env.valueFrom.fileKeyRef")
		for _, field := range []string{"volumeName", "path", "key", "optional"} {
			gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^\s+%s\s+<\w+>( -required-)?\n\s+\S+`, field), "documents %s", field)
		}
	})

	f.It("set env --list names the file, the volume and the key of each variable", func(ctx context.Context) {
		pod := unscheduled(newPod("listed", nil, pods.Dumps(consumer,
			from("VARIABLE", "sub/config.env", "KEY"), v1.EnvVar{Name: "LITERAL", Value: "1"})))
		pods.Create(ctx, f, pod)

		text := kubectl(ctx, "set", "env", "pod/"+pod.Name, "--list", "--namespace", f.Namespace.Name)
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^# VARIABLE from file sub/config\.env in volume config, key KEY$`))
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^LITERAL=1$`))
	})

	f.It("set env --list --resolve says that only the node knows the value, and resolves the others", func(ctx context.Context) {
		pod := unscheduled(newPod("resolved", nil, pods.Dumps(consumer,
			from("VARIABLE", "sub/config.env", "KEY"),
			v1.EnvVar{Name: "NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}})))
		pods.Create(ctx, f, pod)

		text := kubectl(ctx, "set", "env", "pod/"+pod.Name, "--list", "--resolve", "--namespace", f.Namespace.Name)
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^# VARIABLE from file sub/config\.env in volume config, key KEY$`))
		gomega.Expect(text).To(gomega.ContainSubstring("is known on the pod's node only"))
		gomega.Expect(text).To(gomega.MatchRegexp(`(?m)^NAME=resolved$`))
		gomega.Expect(text).NotTo(gomega.ContainSubstring("invalid valueFrom"))
	})

	f.It("podenv audit, where the plugin is in PATH, lists a pod that reads a file", func(ctx context.Context) {
		nodes.RequirePlugin()
		pods.Create(ctx, f, unscheduled(newPod("audited", nil, pods.Dumps(consumer, from("VARIABLE", "sub/config.env", "KEY")))))

		audit := exec.CommandContext(ctx, suite.Kubectl(), "podenv", "audit", "--output", "tsv", "--namespace", f.Namespace.Name,
			"--kubeconfig", framework.TestContext.KubeConfig, "--context", framework.TestContext.KubeContext)
		audit.Env = append(os.Environ(), "PATH="+filepath.Dir(nodes.Options.Podenv)+":"+os.Getenv("PATH"))
		out, _ := audit.Output() // the exit status is that of an audit that found something
		gomega.Expect(audit.ProcessState.ExitCode()).To(gomega.Equal(3))
		gomega.Expect(string(out)).To(gomega.MatchRegexp(`\tPod\taudited\t.*\tVARIABLE\tfileKeyRef\n`))
	})
})

// kubectl runs the kubectl of the series under test, and skips the spec where there
// is none.
func kubectl(ctx context.Context, args ...string) string {
	ginkgo.GinkgoHelper()
	args = append([]string{"--kubeconfig", framework.TestContext.KubeConfig}, args...)
	if framework.TestContext.KubeContext != "" {
		args = append([]string{"--context", framework.TestContext.KubeContext}, args...)
	}
	out, err := exec.CommandContext(ctx, suite.Kubectl(), args...).CombinedOutput()
	framework.ExpectNoError(err, "kubectl %q: %s", args, out)
	return string(out)
}
