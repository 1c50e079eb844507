package tekton

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/kubernetes/test/e2e/framework"
)

var _ = describe("a configuration that does not parse", func(f *framework.Framework) {
	f.It("is refused by the webhook", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", forbidHTTPProxy)
		gomega.Expect(patchDefaults(ctx, f, `{"data":{"pod-template-rules":"forbidden-env-variables: ["}}`)).
			To(gomega.MatchError(gomega.ContainSubstring(`failed parsing default config "pod-template-rules"`)))
		_, err := dryRun(ctx, f, taskRun(`podTemplate: {env: [{name: HTTP_PROXY, value: "8080"}]}`, ""))
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(sentence)))
	})

	f.It("leaves the one before in force where it gets past the webhook, and the controller says so", framework.WithSerial(), func(ctx context.Context) {
		configure(ctx, f, "config-defaults", map[string]string{
			"default-forbidden-env": "HTTP_PROXY",
			"default-pod-template":  `{env: [{name: MSG, value: default}]}`,
		})
		rule := breakDefaults(ctx, f)
		for _, name := range []string{"controller", "webhook"} {
			gomega.Eventually(ctx, logOf).WithArguments(f, name).WithTimeout(time.Minute).WithPolling(time.Second).
				Should(gomega.ContainSubstring(rule), "log of the "+name)
		}
		_, err := dryRun(ctx, f, taskRun(`podTemplate: {env: [{name: HTTP_PROXY, value: "8080"}]}`, ""))
		gomega.Expect(err).To(gomega.MatchError(gomega.ContainSubstring(sentence)))
		see(succeed(ctx, f, taskRun("", ""))[0], map[string]string{"MSG": "default"})
	})
})

// breakDefaults puts rules that do not parse into config-defaults until the spec ends, and returns
// the rule, which the error names. Without its label, the ConfigMap gets past the webhook.
func breakDefaults(ctx context.Context, f *framework.Framework) (rule string) {
	ginkgo.GinkgoHelper()
	rule = "rule-" + rand.String(8)
	framework.ExpectNoError(patchDefaults(ctx, f, `{"metadata":{"labels":{"app.kubernetes.io/part-of":null}}}`))
	framework.ExpectNoError(patchDefaults(ctx, f, fmt.Sprintf(`{"data":{"pod-template-rules":"%s: []"}}`, rule)))
	ginkgo.DeferCleanup(func(ctx context.Context) {
		framework.ExpectNoError(patchDefaults(ctx, f, `{"data":{"pod-template-rules":null}}`))
		gomega.Eventually(ctx, patchDefaults).WithArguments(f, `{"metadata":{"labels":{"app.kubernetes.io/part-of":"tekton-pipelines"}}}`).
			WithTimeout(3*time.Minute).WithPolling(time.Second).Should(gomega.Succeed(), "the webhook serves again")
		inForce(ctx, f)
	})
	return rule
}

// podsOf selects the pods of the controller or the webhook.
func podsOf(component string) string {
	return "app.kubernetes.io/part-of=tekton-pipelines,app.kubernetes.io/component=" + component
}

// logOf is what the pods of a component have logged in the last minutes.
func logOf(ctx context.Context, f *framework.Framework, component string) (string, error) {
	pods, err := f.ClientSet.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: podsOf(component)})
	if err != nil {
		return "", err
	}
	all, recent := "", int64(60)
	for _, pod := range pods.Items {
		log, err := f.ClientSet.CoreV1().Pods(system).GetLogs(pod.Name, &v1.PodLogOptions{SinceSeconds: &recent}).DoRaw(ctx)
		if err != nil {
			return "", err
		}
		all += string(log)
	}
	return all, nil
}
