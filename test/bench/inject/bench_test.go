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

// TestThreeWaysToInject creates pods one after the other, in rounds whose order is mirrored, and
// prints what each way adds to the API server's processor time and to the latency of creation.
// PODS is the number of pods of a way in a round; there are four rounds.
func TestThreeWaysToInject(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv("PODS"))
	if err != nil {
		t.Skip("PODS is not a number: this measures, and proves nothing")
	}
	s := start(t)
	ways := []string{"nothing", "preset", "policy", "webhook"}
	namespace(t, s, ways...)
	apply(t, s, document, "preset")
	apply(t, s, converted(t, document, "policy"), "")
	webhook(t, s, "webhook")
	spec := `{"containers": [{"name": "website", "image": "nginx"}]}`
	for _, way := range ways[1:] {
		await(t, way, func(context.Context) bool { _, ok := env(create(t, s, way, spec, "frontend"), "DB_PORT"); return ok })
	}
	cpu, latency := map[string][]float64{}, map[string][]time.Duration{}
	for round := range 5 { // the first warms up
		order := slices.Clone(ways)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, way := range order {
			before := s.seconds(t)
			for range count {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "website-", Labels: map[string]string{"role": "frontend"}},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "website", Image: "nginx"}}}}
				start := time.Now()
				if _, err := s.client.CoreV1().Pods(way).Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				if round > 0 {
					latency[way] = append(latency[way], time.Since(start))
				}
			}
			if round > 0 {
				cpu[way] = append(cpu[way], (s.seconds(t)-before)/float64(count)*1e6)
			}
		}
	}
	fmt.Printf("%d pods of each\n| way | processor time of the API server per pod, of each round | p50 | p99 |\n|---|---|---|---|\n", 4*count)
	for _, way := range ways {
		slices.Sort(latency[way])
		n := len(latency[way])
		fmt.Printf("| %s | %.0f µs | %v | %v |\n", way, cpu[way], latency[way][n/2].Round(10*time.Microsecond), latency[way][n*99/100].Round(10*time.Microsecond))
	}
}

// webhook injects the example into the pods of a namespace, from this process: its own processor
// time is not the API server's.
func webhook(t *testing.T, s *server, namespace string) {
	t.Helper()
	handler := func(w http.ResponseWriter, r *http.Request) {
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
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env = append(c.Env, corev1.EnvVar{Name: "DB_PORT", Value: "6379"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "cache-volume", MountPath: "/cache"})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "cache-volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		patch, _ := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": pod.Spec}})
		review.Response = &admission.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: ptr.To(admission.PatchTypeJSONPatch)}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // fails only if the API server has gone
	}
	hook := httptest.NewUnstartedServer(http.HandlerFunc(handler))
	hook.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	hook.StartTLS()
	t.Cleanup(hook.Close)
	_, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(context.Background(), &registration.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "inject"},
		Webhooks: []registration.MutatingWebhook{{
			Name:                    "inject.podenv.invalid",
			ClientConfig:            registration.WebhookClientConfig{URL: ptr.To(hook.URL), CABundle: certificate(hook)},
			Rules:                   []registration.RuleWithOperations{{Operations: []registration.OperationType{registration.Create}, Rule: registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"role": "frontend"}},
			SideEffects:             ptr.To(registration.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func certificate(hook *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
}
