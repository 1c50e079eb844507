package podpreset

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
)

const mutator = "mutator"

var _ = describe("where a webhook changes pods", func(f *framework.Framework) {
	f.It("the plugin runs a second time: a container that the webhook adds gets the preset, and the others have it once", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		mutate(ctx, f, []patch{
			{"add", "/spec/containers/-", pods.Dumps("added")},
			{"replace", "/spec/containers/0/env/0/value", "of the webhook"},
			{"replace", "/metadata/labels/role", "backend"},
		})
		pod := pods.Create(ctx, f, website(nil))

		gomega.Expect(pod.Spec.Containers).To(gomega.HaveLen(2))
		for i, port := range []string{"of the webhook", "6379"} {
			c := pod.Spec.Containers[i]
			gomega.Expect(c.Env).To(gomega.HaveLen(1), c.Name)
			gomega.Expect(envOf(c)).To(gomega.Equal(map[string]string{"DB_PORT": port}), c.Name)
			gomega.Expect(pathsOf(c)).To(gomega.Equal(map[string]string{"/cache": "cache-volume"}), c.Name)
		}
		gomega.Expect(slices.DeleteFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return v.Name != "cache-volume" })).To(gomega.HaveLen(1))
		gomega.Expect(pod.Annotations).To(gomega.HaveKey(applied + "allow-database"))

		ginkgo.By("waiting for longer than an event takes, for there must be none")
		gomega.Consistently(ctx, func(ctx context.Context) ([]string, error) { return conflicts(ctx, f, pod, "allow-database") }).
			WithTimeout(3 * time.Second).Should(gomega.BeEmpty())
	})

	f.It("a container that the webhook adds, and that is in conflict, gets nothing, and the event says so", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		added := pods.Dumps("added")
		added.Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}}
		mutate(ctx, f, []patch{{"add", "/spec/containers/-", added}})
		pod := pods.Create(ctx, f, website(nil))

		gomega.Expect(pod.Spec.Containers).To(gomega.HaveLen(2))
		gomega.Expect(envOf(pod.Spec.Containers[0])).To(gomega.Equal(map[string]string{"DB_PORT": "6379"}))
		gomega.Expect(envOf(pod.Spec.Containers[1])).To(gomega.Equal(map[string]string{"DB_PORT": "1"}))
		gomega.Expect(pathsOf(pod.Spec.Containers[1])).To(gomega.BeEmpty())
		gomega.Expect(pod.Annotations).To(gomega.HaveKey(applied + "allow-database"))
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Container added gets nothing of it. Duplicate env DB_PORT.")
	})

	f.It("the event of a conflict is raised though a validating webhook keeps the pod waiting", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		const timeout = 4 // seconds
		neverAnswer(ctx, f, timeout)
		pod := pods.Create(ctx, f, website(func(pod *v1.Pod) { pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DB_PORT", Value: "1"}} }))
		expectConflict(ctx, f, pod, "allow-database", "Conflict on pod preset. Duplicate env DB_PORT.")
	})
})

// patch is an operation of a JSON patch.
type patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// mutate has a webhook change the pods of f's namespace that have a label of the website,
// from when it returns until the spec's end.
func mutate(ctx context.Context, f *framework.Framework, patches []patch) {
	ginkgo.GinkgoHelper()
	client, ns := f.ClientSet, f.Namespace.Name
	_, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:                    mutator + ".podenv.dev",
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: ns}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": "website"}},
			Rules:                   creationOfPods,
			ClientConfig:            serve(ctx, f, patches),
			FailurePolicy:           ptr.To(admissionv1.Fail),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete, ns, metav1.DeleteOptions{})

	// API servers learn of webhooks, and of the endpoints of services, by watches.
	gomega.Eventually(ctx, func(ctx context.Context) (int, error) {
		probe, err := tryDryRun(ctx, f)
		if err != nil {
			return 0, err
		}
		return len(probe.Spec.Containers), nil
	}).WithTimeout(time.Minute).Should(gomega.Equal(2), "the webhook to change a pod")
}

// neverAnswer has a webhook judge the pods of f's namespace that have a label of the website, and
// not answer within timeout, in seconds: then they are let through.
func neverAnswer(ctx context.Context, f *framework.Framework, timeout int32) {
	ginkgo.GinkgoHelper()
	client, ns := f.ClientSet, f.Namespace.Name
	config := serve(ctx, f, []patch{})
	config.Service.Path = ptr.To("/never")
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "silent.podenv.dev",
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: ns}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"app": "website"}},
			Rules:                   creationOfPods,
			ClientConfig:            config,
			TimeoutSeconds:          &timeout,
			FailurePolicy:           ptr.To(admissionv1.Ignore),
			SideEffects:             ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	ginkgo.DeferCleanup(client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete, ns, metav1.DeleteOptions{})

	gomega.Eventually(ctx, func(ctx context.Context) (time.Duration, error) {
		started := time.Now()
		_, err := tryDryRun(ctx, f)
		return time.Since(started), err
	}).WithTimeout(time.Minute).Should(gomega.BeNumerically(">=", time.Duration(timeout)*time.Second), "the webhook to keep a pod waiting")
}

var creationOfPods = []admissionv1.RuleWithOperations{{
	Operations: []admissionv1.OperationType{admissionv1.Create},
	Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
}}

// tryDryRun asks the API server for a website, which it does not store.
func tryDryRun(ctx context.Context, f *framework.Framework) (*v1.Pod, error) {
	probe := website(func(pod *v1.Pod) { pod.Name = "probe" })
	return f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// serve runs a webhook that answers with patches, until the spec's end.
func serve(ctx context.Context, f *framework.Framework, patches []patch) admissionv1.WebhookClientConfig {
	ginkgo.GinkgoHelper()
	text, err := json.Marshal(patches)
	framework.ExpectNoError(err)
	client, ns := f.ClientSet, f.Namespace.Name
	certificate, key, err := cert.GenerateSelfSignedCertKey(mutator+"."+ns+".svc", nil, nil)
	framework.ExpectNoError(err)
	_, err = client.CoreV1().Secrets(ns).Create(ctx, &v1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: mutator}, Data: map[string][]byte{"tls.crt": certificate, "tls.key": key}}, metav1.CreateOptions{})
	framework.ExpectNoError(err)
	_, err = client.CoreV1().Services(ns).Create(ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: mutator},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": mutator}, Ports: []v1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}}},
	}, metav1.CreateOptions{})
	framework.ExpectNoError(err)

	server := pods.Dumps(mutator)
	server.Args = []string{"webhook", "/tls/tls.crt", "/tls/tls.key", string(text)}
	server.VolumeMounts = []v1.VolumeMount{{Name: "tls", MountPath: "/tls", ReadOnly: true}}
	server.ReadinessProbe = &v1.Probe{PeriodSeconds: 1, ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8443)}}}
	pod := pods.Once(mutator, server)
	pod.Labels = map[string]string{"app": mutator}
	pod.Spec.Volumes = []v1.Volume{{Name: "tls", VolumeSource: v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: mutator}}}}
	pods.Create(ctx, f, pod)
	pods.Await(ctx, f, mutator, "it to be ready", func(pod *v1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodReady && c.Status == v1.ConditionTrue })
	})

	return admissionv1.WebhookClientConfig{CABundle: certificate, Service: &admissionv1.ServiceReference{Namespace: ns, Name: mutator}}
}
