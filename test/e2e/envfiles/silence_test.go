package envfiles

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/test/e2e/envfiles/envfile"
	"podenv.dev/test/e2e/internal/pods"
)

var _ = describe("no byte of an env file", func(f *framework.Framework) {
	f.It("shows in the events and the status of a pod whose file cannot be parsed", func(ctx context.Context) {
		// The value comes from a Secret, so that it is in no pod's spec either.
		const secret = "xyzzy-plugh-hunter2"
		writeSecret(ctx, f, secret)

		broken := map[string]string{
			"in-a-value":        "A=$LICENSE\nbroken",
			"in-no-declaration": "A=1\n$LICENSE",
			"in-a-name":         "A=1\n$LICENSE ä=x",
			"in-a-long-name":    "A=1\n$LICENSE$(printf %0200d 0)=x",
			"in-a-long-value":   "A=$LICENSE$(printf %032768d 0)",
		}
		if envfile.Quoted() {
			broken["before-a-lost-quote"] = "A=$LICENSE'lost"
		} else {
			broken["in-a-lost-join"] = `A=$LICENSE \\`
		}
		for name, content := range broken {
			pods.Create(ctx, f, newPod(name, []v1.Container{writesSecret(content)}, pods.Dumps(consumer, from("A", "config.env", "A"))))
		}
		for name := range broken {
			pods.AwaitConfigError(ctx, f, name, consumer)

			shown := strings.ToLower(pods.EventsAndStatus(ctx, f, name))
			for _, part := range append(strings.Split(secret, "-"), secret) {
				gomega.Expect(shown).NotTo(gomega.ContainSubstring(part), "the secret was written %s", name)
			}
		}
	})
})

// writeSecret makes the Secret that writesSecret takes LICENSE from.
func writeSecret(ctx context.Context, f *framework.Framework, value string) {
	ginkgo.GinkgoHelper()
	_, err := f.ClientSet.CoreV1().Secrets(f.Namespace.Name).Create(ctx, &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "license"},
		StringData: map[string]string{"LICENSE": value},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
}

// writesSecret is an init container that writes content of the form VAR=VALUE, a text in a
// shell's double quotes that may have $LICENSE in it, to the env file, in the form that the
// kubelets read.
func writesSecret(content string) v1.Container {
	ginkgo.GinkgoHelper()
	writer := runs("setup-envfile", fmt.Sprintf(`printf '%%s\n' "%s" > /data/config.env`, envfile.Text(content)))
	writer.EnvFrom = []v1.EnvFromSource{{SecretRef: &v1.SecretEnvSource{
		LocalObjectReference: v1.LocalObjectReference{Name: "license"},
	}}}
	return writer
}
