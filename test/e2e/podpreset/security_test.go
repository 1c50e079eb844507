package podpreset

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/utils/ptr"

	"podenv.dev/test/e2e/internal/pods"
	"podenv.dev/test/e2e/internal/suite"
)

var _ = describe("who may write presets", func(f *framework.Framework) {
	f.It("only the roles admin and edit: view reads them, others do not see them", func(ctx context.Context) {
		for role, may := range map[string]struct{ read, write bool }{
			"admin": {true, true}, "edit": {true, true}, "view": {true, false}, "": {false, false},
		} {
			user := "user-" + role
			if role != "" {
				_, err := f.ClientSet.RbacV1().RoleBindings(f.Namespace.Name).Create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: role},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
					Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
				}, metav1.CreateOptions{})
				framework.ExpectNoError(err)
			}
			as := clientOf(f, user).Resource(presets).Namespace(f.Namespace.Name)
			read := func(ctx context.Context) error {
				_, err := as.List(ctx, metav1.ListOptions{})
				return err
			}
			if may.read {
				// API servers learn of bindings by a watch.
				gomega.Eventually(ctx, read).WithTimeout(30*time.Second).Should(gomega.Succeed(), "role %q", role)
			} else {
				gomega.Expect(read(ctx)).To(gomega.Satisfy(apierrors.IsForbidden), "role %q", role)
			}
			preset := parse(allowDatabase)
			_, err := as.Create(ctx, preset, metav1.CreateOptions{})
			if may.write {
				framework.ExpectNoError(err, "role %q", role)
				framework.ExpectNoError(as.Delete(ctx, preset.GetName(), metav1.DeleteOptions{}))
				continue
			}
			gomega.Expect(err).To(gomega.Satisfy(apierrors.IsForbidden), "role %q", role)
			// What somebody else has made they cannot change either.
			_, err = client(f).Create(ctx, preset, metav1.CreateOptions{})
			framework.ExpectNoError(err)
			gomega.Expect(as.Delete(ctx, preset.GetName(), metav1.DeleteOptions{})).To(gomega.Satisfy(apierrors.IsForbidden), "role %q", role)
			framework.ExpectNoError(client(f).Delete(ctx, preset.GetName(), metav1.DeleteOptions{}))
		}
	})

	f.It("a preset changes no pod of another namespace", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		other, err := f.CreateNamespace(ctx, "podpreset-other", nil)
		framework.ExpectNoError(err)
		pod, err := f.ClientSet.CoreV1().Pods(other.Name).Create(ctx, website(nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		framework.ExpectNoError(err)
		gomega.Expect(pod.Spec.Containers[0].Env).To(gomega.BeEmpty())
		gomega.Expect(pod.Annotations).NotTo(gomega.HaveKey(applied + "allow-database"))
	})
})

var _ = describe("what the pod's author could not have written, a preset cannot add:", func(f *framework.Framework) {
	f.It("PodSecurity judges the pod as injected", func(ctx context.Context) {
		// The namespace enforces the level baseline, which has no hostPath.
		framework.ExpectNoError(tryCreate(ctx, f, `
metadata: {name: host}
spec:
  selector: {matchLabels: {role: frontend}}
  volumes: [{name: host, hostPath: {path: /etc}}]
  volumeMounts: [{name: host, mountPath: /host}]
`))
		gomega.Eventually(ctx, func(ctx context.Context) error {
			_, err := f.ClientSet.CoreV1().Pods(f.Namespace.Name).Create(ctx, website(nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}).WithTimeout(30 * time.Second).Should(gomega.MatchError(gomega.And(
			gomega.ContainSubstring(`violates PodSecurity "baseline`), gomega.ContainSubstring(`hostPath volumes (volume "host")`))))
	})

	f.It("a ValidatingAdmissionPolicy judges the pod as injected", func(ctx context.Context) {
		create(ctx, f, allowDatabase)
		name := f.Namespace.Name
		suite.CreatePolicy(ctx, f, suite.PolicyVersion(f), &admissionv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: ptr.To(admissionv1.Fail),
				MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}}},
				Validations: []admissionv1.Validation{{
					Expression: `object.spec.containers.all(c, !has(c.env) || c.env.all(e, e.name != "DB_PORT"))`, Message: "DB_PORT is not for pods",
				}},
			},
		}, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
				MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelMetadataName: name}}},
			},
		})

		gomega.Eventually(ctx, func(ctx context.Context) error {
			_, err := f.ClientSet.CoreV1().Pods(name).Create(ctx, website(nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}).WithTimeout(time.Minute).Should(gomega.MatchError(gomega.ContainSubstring("DB_PORT is not for pods")))
		excluded := website(func(pod *v1.Pod) { pod.Annotations = map[string]string{annotation + "exclude": "true"} })
		dryRun(ctx, f, excluded)
	})

	f.It("a quota of claims holds for the volume that a preset adds", func(ctx context.Context) {
		const presets = v1.ResourceName("count/podpresets.settings.k8s.io")
		quotas := f.ClientSet.CoreV1().ResourceQuotas(f.Namespace.Name)
		_, err := quotas.Create(ctx, &v1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "claims"},
			Spec: v1.ResourceQuotaSpec{Hard: v1.ResourceList{
				v1.ResourcePersistentVolumeClaims: resource.MustParse("0"), presets: resource.MustParse("0"),
			}},
		}, metav1.CreateOptions{})
		framework.ExpectNoError(err)
		exceeded := func(timeout time.Duration, what string) {
			gomega.Eventually(ctx, func(ctx context.Context) error {
				_, err := client(f).Create(ctx, parse(allowDatabase), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			}).WithTimeout(timeout).Should(gomega.MatchError(gomega.ContainSubstring("exceeded quota: claims")), what)
		}
		// The API server goes by the status that it has watched, and counts nothing before there is one.
		// Its writer, the quota's controller, learns of resources by discovery, every half a minute, and
		// counts what there is once: a preset that it does not know of yet is not counted for minutes.
		// So the first one is not allowed until both know.
		exceeded(3*time.Minute, "the first preset")
		_, err = quotas.Patch(ctx, "claims", types.MergePatchType, []byte(`{"spec": {"hard": {"`+presets+`": "1"}}}`), metav1.PatchOptions{})
		framework.ExpectNoError(err)
		gomega.Eventually(ctx, func(ctx context.Context) error {
			return tryCreate(ctx, f, `
metadata: {name: scratch}
spec:
  selector: {matchLabels: {role: frontend}}
  volumes:
  - name: scratch
    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
  volumeMounts: [{name: scratch, mountPath: /scratch}]
`)
		}).WithTimeout(time.Minute).Should(gomega.Succeed())
		awaitKnown(ctx, f, "scratch", map[string]string{"role": "frontend"})
		exceeded(time.Minute, "a second preset")

		pod := pods.Create(ctx, f, website(nil))
		gomega.Expect(pathsOf(pod.Spec.Containers[0])).To(gomega.HaveKey("/scratch"))
		gomega.Eventually(ctx, func(ctx context.Context) string {
			return pods.EventsAndStatus(ctx, f, pod.Name)
		}).WithTimeout(time.Minute).Should(gomega.ContainSubstring("exceeded quota: claims"))
		claims, err := f.ClientSet.CoreV1().PersistentVolumeClaims(f.Namespace.Name).List(ctx, metav1.ListOptions{})
		framework.ExpectNoError(err)
		gomega.Expect(claims.Items).To(gomega.BeEmpty())
	})
})

var _ = describe("values", func(f *framework.Framework) {
	f.It("are in no event, no warning and no log of the API server, at verbosity 7 too", func(ctx context.Context) {
		servers, err := f.ClientSet.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=kube-apiserver"})
		framework.ExpectNoError(err)
		// The cluster's endpoint leads to one of several, and only that one would log more. A
		// cluster of podenv has one control plane, beside which only the suite upgrade runs another.
		gomega.Expect(servers.Items).To(gomega.HaveLen(1), "API servers that run as pods; the spec sets the verbosity of one: run it on a cluster with one control plane")
		logMore(ctx, f, servers.Items[0].Spec.Containers[0].Command)
		// Three that nothing else in the cluster has.
		secret := func(what string) string { return fmt.Sprintf("hidden-%s-%d", what, time.Now().UnixNano()) }
		ofPreset, ofPod, ofConfigMap := secret("preset"), secret("pod"), secret("configmap")
		framework.ExpectNoError(tryCreate(ctx, f, `
metadata: {name: injected}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: INJECTED, value: `+ofPreset+`}]
`))
		framework.ExpectNoError(tryCreate(ctx, f, `
metadata: {name: conflicting}
spec:
  selector: {matchLabels: {role: frontend}}
  env: [{name: DUPLICATE, value: `+ofPreset+`}, {name: KEY, value: `+ofPreset+`}]
`))
		awaitKnown(ctx, f, "injected", map[string]string{"role": "frontend"})
		_, err = f.ClientSet.CoreV1().ConfigMaps(f.Namespace.Name).Create(ctx, &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"KEY": ofConfigMap}}, metav1.CreateOptions{})
		framework.ExpectNoError(err)

		config, warned := withWarnings(f)
		as, err := kubernetes.NewForConfig(config)
		framework.ExpectNoError(err)
		pod, err := as.CoreV1().Pods(f.Namespace.Name).Create(ctx, website(func(pod *v1.Pod) {
			pod.Spec.Containers[0].Env = []v1.EnvVar{{Name: "DUPLICATE", Value: ofPod}}
			pod.Spec.Containers[0].EnvFrom = []v1.EnvFromSource{{ConfigMapRef: &v1.ConfigMapEnvSource{LocalObjectReference: v1.LocalObjectReference{Name: "settings"}}}}
		}), metav1.CreateOptions{})
		framework.ExpectNoError(err)
		const message = "Conflict on pod preset. Duplicate env DUPLICATE. Duplicate env KEY, which envFrom ConfigMap settings sets too."
		expectConflict(ctx, f, pod, "conflicting", message)

		said := warned.text()
		gomega.Expect(said).To(gomega.ContainSubstring("PodPreset conflicting is not injected: " + message))
		said += pods.EventsAndStatus(ctx, f, pod.Name)
		said += logOfServer(ctx, f, servers.Items[0])
		lookUp := "/namespaces/" + f.Namespace.Name + "/configmaps/settings"
		gomega.Expect(strings.Contains(said, lookUp)).To(gomega.BeTrue(), "the log does not show that the plugin reads the ConfigMap")
		for _, value := range []string{ofPreset, ofPod, ofConfigMap} {
			gomega.Expect(strings.Contains(said, value)).To(gomega.BeFalse(), "a value is in what is said: %.40s", value)
		}
	})
})

// What the folder of a container's logs lists: the log of each start, and what was rotated.
var (
	current = regexp.MustCompile(`href="([0-9]+\.log)"`)
	rotated = regexp.MustCompile(`href="([0-9]+\.log\.[0-9-]+)"`)
)

// logOfServer is the log of an API server that is a static pod, with what its kubelet has rotated
// and not compressed yet. The pod's log through the API is what came since the last rotation.
func logOfServer(ctx context.Context, f *framework.Framework, server v1.Pod) string {
	ginkgo.GinkgoHelper()
	folder := fmt.Sprintf("/api/v1/nodes/%s/proxy/logs/pods/%s_%s_%s/%s/", server.Spec.NodeName,
		server.Namespace, server.Name, server.Annotations["kubernetes.io/config.hash"], server.Spec.Containers[0].Name)
	read := func(file string) string {
		text, err := f.ClientSet.CoreV1().RESTClient().Get().AbsPath(folder + file).DoRaw(ctx)
		framework.ExpectNoError(err, "read the log of the API server")
		return string(text)
	}
	log := ""
	for _, kind := range []*regexp.Regexp{current, rotated} { // in this order: one may become the other meanwhile
		for _, file := range kind.FindAllStringSubmatch(read(""), -1) {
			log += read(file[1])
		}
	}
	return log
}

// logMore sets the verbosity of the API server to 7, until the spec ends. With more, each
// Kubernetes logs the bodies of its own requests.
func logMore(ctx context.Context, f *framework.Framework, command []string) {
	ginkgo.GinkgoHelper()
	set := func(ctx context.Context, verbosity string) {
		_, err := f.ClientSet.CoreV1().RESTClient().Put().AbsPath("/debug/flags/v").Body([]byte(verbosity)).DoRaw(ctx)
		framework.ExpectNoError(err, "set the verbosity of the API server")
	}
	before := "0"
	for _, flag := range command {
		if v, ok := strings.CutPrefix(flag, "--v="); ok {
			before = v
		}
	}
	set(ctx, "7")
	ginkgo.DeferCleanup(set, before)
}

// clientOf acts as user.
func clientOf(f *framework.Framework, user string) dynamic.Interface {
	ginkgo.GinkgoHelper()
	config := rest.CopyConfig(f.ClientConfig())
	config.Impersonate.UserName = user
	c, err := dynamic.NewForConfig(config)
	framework.ExpectNoError(err)
	return c
}

// withWarnings returns the configuration of a client, and what the API server will warn it of.
func withWarnings(f *framework.Framework) (*rest.Config, *warnings) {
	warned := &warnings{}
	config := rest.CopyConfig(f.ClientConfig())
	config.WarningHandler = warned
	return config, warned
}

// warnings keeps what the API server warns of.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.texts, "\n")
}
