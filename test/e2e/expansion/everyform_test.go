package expansion

import (
	"context"
	"maps"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/internal/pods"
)

// everyForm is a pod that has each form of a reference in env, command and args; its
// containers are consumer and printer.
func everyForm() *v1.Pod {
	var env []v1.EnvVar
	for _, form := range forms {
		env = append(env, literal(form.name, form.value))
	}
	words := prints([]string{"$(A)$(A)", "$(NONE)"}, []string{"$(A", "$$(A)", "$$$(A)", "$(NONE)"}, literal("A", "a"))
	words.Name = printer
	return pods.Once("every-form", dumps(env...), words)
}

const printer = "printer"

var forms = []struct{ name, value, want string }{
	{"A", "a", "a"},
	{"TWICE", "$(A)$(A)", "aa"},
	{"AMID", "<$(A)>", "<a>"},
	{"ESCAPED", "$$(A)", "$(A)"},
	{"ESCAPED_DOLLAR", "$$$(A)", "$a"},
	{"UNCLOSED", "$(A", "$(A"},
	{"NO_REFERENCE", "$A ${A} (A) $", "$A ${A} (A) $"},
	{"NOT_DECLARED", "$(NONE)", "$(NONE)"},
	{"NESTED", "$(A$(A))", "$(A$(A))"},
}

// expectEveryForm checks what the containers of everyForm, which have ended, saw.
func expectEveryForm(ctx context.Context, f *framework.Framework, pod string) {
	ginkgo.GinkgoHelper()
	want := map[string]string{}
	for _, form := range forms {
		want[form.name] = form.want
	}
	gomega.Expect(seen(ctx, f, pod)).To(gomega.Equal(want))
	gomega.Expect(pods.Log(ctx, f, pod, printer)).To(gomega.Equal("aa\n$(NONE)\n$(A\n$(A)\n$a\n$(NONE)\n"))
}

// expectEnv runs pod and checks that its consumer sees the variables of want and no
// others.
func expectEnv(ctx context.Context, f *framework.Framework, pod *v1.Pod, want map[string]string) {
	ginkgo.GinkgoHelper()
	pods.RunToEnd(ctx, f, pod)
	gomega.Expect(seen(ctx, f, pod.Name)).To(gomega.Equal(want))
}

// seen is the environment of the pod's consumer without what every container has.
func seen(ctx context.Context, f *framework.Framework, pod string) map[string]string {
	ginkgo.GinkgoHelper()
	env := pods.Env(ctx, f, pod, consumer)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return name == "PATH" || name == "HOME" || name == "HOSTNAME" || strings.HasPrefix(name, "KUBERNETES_")
	})
	return env
}
