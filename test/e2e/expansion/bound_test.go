package expansion

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

var _ = describeIf(whateverTheGate, "references that make more than a process can be given", func(f *framework.Framework) {
	// The last would have 10^17 bytes.
	bomb := []v1.EnvVar{literal("V0", strings.Repeat("s3cr3t ", 150))}
	for i := range 14 {
		bomb = append(bomb, literal(fmt.Sprintf("V%d", i+1), strings.Repeat(fmt.Sprintf("$(V%d)", i), 10)))
	}

	f.It("keep the container from starting, and the variable is named", func(ctx context.Context) {
		expectTooLong(ctx, f, pods.Once("bomb", dumps(bomb...)), `variable "V3"`)
	})

	f.It("or the word of command or args", func(ctx context.Context) {
		expectTooLong(ctx, f, pods.Once("word", prints([]string{"$(V2)$(V2)"}, nil, bomb[:3]...)), "command[2]")
		expectTooLong(ctx, f, pods.Once("argument", prints(nil, []string{"fine", "$(V2)$(V2)"}, bomb[:3]...)), "args[1]")
	})
})

func expectTooLong(ctx context.Context, f *framework.Framework, pod *v1.Pod, what string) {
	ginkgo.GinkgoHelper()
	pods.Create(ctx, f, pod)
	event := pods.AwaitConfigError(ctx, f, pod.Name, consumer)
	gomega.Expect(event.Message).To(gomega.ContainSubstring("cannot expand " + what + ": the result is longer than a process can be given"))
	gomega.Expect(pods.EventsAndStatus(ctx, f, pod.Name)).NotTo(gomega.ContainSubstring("s3cr3t"))
}
