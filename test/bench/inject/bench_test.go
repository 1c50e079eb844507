package inject

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// document is the first example of the document "Pod Preset".
const document = `{"apiVersion": "settings.k8s.io/v1alpha1", "kind": "PodPreset", "metadata": {"name": "allow-database"}, "spec": {
  "selector": {"matchLabels": {"role": "frontend"}}, "env": [{"name": "DB_PORT", "value": "6379"}],
  "volumeMounts": [{"mountPath": "/cache", "name": "cache-volume"}], "volumes": [{"name": "cache-volume", "emptyDir": {}}]}}`

// TestMeasure creates pods one after the other, in rounds whose order is mirrored, and writes what each way
// costs the API server, and what a creation takes, to the file RESULTS in the Go benchmark format.
// `podenv bench --only inject` runs it. PODS is the number of pods of a way in a round.
func TestMeasure(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("PODS"))
	if err != nil {
		t.Skip("PODS is not a number: this measures, and proves nothing")
	}
	s := start(t)
	namespace(t, s, ways...)
	inject(t, s)
	var lines strings.Builder
	for round := range 1 + rounds { // the first warms up
		order := slices.Clone(ways)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, way := range order {
			before, took := s.seconds(t), make([]time.Duration, count)
			for i := range count {
				start := time.Now()
				_, err := s.client.CoreV1().Pods(way).Create(t.Context(), podOf(t, plain, "frontend"), metav1.CreateOptions{})
				if took[i] = time.Since(start); err != nil {
					t.Fatal(err)
				}
			}
			if slices.Sort(took); round > 0 {
				fmt.Fprintf(&lines, "BenchmarkCreatePod/by=%s %d %.0f cpu-ns/op %d p50-ns/op %d p99-ns/op\n",
					way, count, (s.seconds(t)-before)/float64(count)*1e9, took[count/2], took[count*99/100])
			}
		}
	}
	if err := os.WriteFile(os.Getenv("RESULTS"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// rounds are enough for an interval of 95 %.
const rounds = 12

// ways are namespaces, in each of which the first example is injected by another way.
var ways = []string{"nothing", "preset", "converted", "policy", "webhook"}

// plain is a pod without a variable.
const plain = `{"containers": [{"name": "website", "image": "nginx"}]}`

// inject sets up all ways, and waits until they are in force.
func inject(t *testing.T, s *server) {
	t.Helper()
	apply(t, s, document, "preset")
	apply(t, s, converted(t, document, "converted"), "")
	apply(t, s, parameter, "policy")
	apply(t, s, policy("policy", "policy", "Fail", "Deny"), "")
	webhook(t, s, "webhook", "webhook", "DB_PORT", registration.Fail)
	for _, way := range ways[1:] {
		await(t, way, func(context.Context) bool {
			return len(create(t, s, way, plain, "frontend").Spec.Containers[0].Env) > 0
		})
	}
}

// parameter is an object that the policy takes the value from.
const parameter = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "database"}, "data": {"port": "6379"}}`

// policy is one for the example that is written as the documentation of MutatingAdmissionPolicy does.
func policy(name, namespace, failure, notFound string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/%[1]s
kind: MutatingAdmissionPolicy
metadata:
  name: %[2]s
spec:
  failurePolicy: %[4]s
  reinvocationPolicy: Never
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
    objectSelector: {matchLabels: {role: frontend}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: |
        Object{spec: Object.spec{
          containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
            env: [Object.spec.containers.env{name: "DB_PORT", value: params.data.port}],
            volumeMounts: [Object.spec.containers.volumeMounts{name: "cache-volume", mountPath: "/cache"}]}),
          volumes: [Object.spec.volumes{name: "cache-volume", emptyDir: Object.spec.volumes.emptyDir{}}]}}
---
apiVersion: admissionregistration.k8s.io/%[1]s
kind: MutatingAdmissionPolicyBinding
metadata:
  name: %[2]s
spec:
  policyName: %[2]s
  paramRef: {name: database, parameterNotFoundAction: %[5]s}
`, policyVersion(), name, namespace, failure, notFound)
}

// hook is a webhook, which can be made to hang.
type hook struct {
	*httptest.Server
	hangs atomic.Bool
}

// webhook injects the example into the pods of a namespace, from this process: its own processor
// time is not the API server's.
func webhook(t *testing.T, s *server, name, namespace, variable string, failure registration.FailurePolicyType) *hook {
	t.Helper()
	h := &hook{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		if h.hangs.Load() {
			time.Sleep(2 * timeout)
		}
		review := &admission.AdmissionReview{}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, review)
		}
		pod := &corev1.Pod{}
		if err == nil {
			err = json.Unmarshal(review.Request.Object.Raw, pod)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		has := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "cache-volume" })
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			if c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: "6379"}); !has {
				c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cache-volume", MountPath: "/cache"})
			}
		}
		if !has {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "cache-volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
		patch, _ := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": pod.Spec}})
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: ptr.To(admission.PatchTypeJSONPatch)}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // fails only if the API server has gone
	}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(handler))
	h.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	h.StartTLS()
	t.Cleanup(h.Close)
	_, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(context.Background(), &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []registration.MutatingWebhook{{
			Name:                    "inject.podenv.invalid",
			ClientConfig:            registration.WebhookClientConfig{URL: ptr.To(h.URL), CABundle: certificate(h.Server)},
			Rules:                   []registration.RuleWithOperations{{Operations: []registration.OperationType{registration.Create}, Rule: registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			FailurePolicy:           &failure,
			TimeoutSeconds:          ptr.To(int32(timeout.Seconds())),
			SideEffects:             ptr.To(registration.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// timeout is how long an API server waits for the webhook.
const timeout = time.Second

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
