package audit

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPages(t *testing.T) {
	never := func(string) *metav1.Status { return nil }
	for name, test := range map[string]struct {
		jsonOnly bool
		expired  func(token string) *metav1.Status
		requests int
	}{
		"protobuf, where the server offers it": {expired: never, requests: 4},
		"JSON, where the server has only that": {expired: never, jsonOnly: true, requests: 4},
		"an expired token is exchanged for the one that the server offers": {
			expired: func(token string) *metav1.Status {
				if token == "6" {
					return gone("6+")
				}
				return nil
			},
			requests: 5,
		},
		"an expired token without another: all again, in one piece": {
			expired:  func(string) *metav1.Status { return gone("") },
			requests: 3,
		},
		"tokens that are always too old: all again, in one piece": {
			expired:  func(token string) *metav1.Status { return gone(token + "+") },
			requests: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{pods: podsOf(10), jsonOnly: test.jsonOnly, expired: test.expired}
			report, err := Run(t.Context(), s.start(t), Options{PageSize: 3})
			if err != nil || len(report.Unread) > 0 {
				t.Fatal(err, report.Unread)
			}
			if report.Objects != 10 || len(report.Findings) != 10 {
				t.Errorf("looked at %d pods and found %d uses, want 10 of each", report.Objects, len(report.Findings))
			}
			for i, f := range report.Findings {
				if want := fmt.Sprintf("pod-%05d", i); f.Name != want || f.What != FileKeyRef {
					t.Errorf("finding %d is %+v, want one in %s", i, f, want)
				}
			}
			if got := int(s.requests.Load()); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
		})
	}
}

func TestWhatWasReadBeforeAnErrorCounts(t *testing.T) {
	s := &server{pods: podsOf(10), expired: func(token string) *metav1.Status {
		if token != "6" {
			return nil
		}
		return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403}
	}}
	report, err := Run(t.Context(), s.start(t), Options{PageSize: 3})
	if err != nil {
		t.Fatal(err)
	}
	if report.Objects != 6 || len(report.Findings) != 6 || len(report.Unread) != 1 || !strings.HasPrefix(report.Unread[0].Error(), "list pods: ") {
		t.Errorf("got %d pods, %d findings, unread %v", report.Objects, len(report.Findings), report.Unread)
	}
}

// BenchmarkAudit is an audit of 10,000 pods through HTTP, which are as large as pods
// of a real cluster and of which every tenth uses a feature.
func BenchmarkAudit(b *testing.B) {
	const n = 10_000
	pods := podsOf(n)
	for i := range pods {
		fill(&pods[i])
		if i%10 > 0 {
			pods[i].Spec.Containers[0].Env[0] = literal("PLAIN")
		}
	}
	for name, jsonOnly := range map[string]bool{"protobuf": false, "json": true} {
		b.Run(name, func(b *testing.B) {
			s := &server{pods: pods, jsonOnly: jsonOnly}
			client := s.start(b)
			audit := func() {
				report, err := Run(b.Context(), client, Options{})
				if err != nil || report.Objects != n || len(report.Findings) != n/10 {
					b.Fatalf("%+v, %v", report, err)
				}
			}
			audit() // the server encodes its pages
			b.ReportAllocs()
			for b.Loop() {
				audit()
			}
			b.ReportMetric(n/(b.Elapsed().Seconds()/float64(b.N)), "pods/s")
		})
	}
}

// podsOf are n pods whose container takes a variable from an env file.
func podsOf(n int) []v1.Pod {
	pods := make([]v1.Pod, n)
	for i := range pods {
		pods[i] = v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("pod-%05d", i)},
			Spec:       podOf("c", fromFile("F")),
		}
	}
	return pods
}

// fill gives pod what a real one has besides: variables, volumes, who manages which
// field, and a status.
func fill(pod *v1.Pod) {
	c := &pod.Spec.Containers[0]
	for i := range 20 {
		c.Env = append(c.Env, literal(fmt.Sprintf("VARIABLE_%d", i)))
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: fmt.Sprintf("key-%d", i%3), Operator: v1.TolerationOpExists})
	}
	for i := range 4 {
		name := fmt.Sprintf("volume-%d", i)
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: name, MountPath: "/" + name})
		pod.Spec.Volumes = append(pod.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: v1.PodConditionType(name), Status: v1.ConditionTrue})
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:spec":"` + strings.Repeat("f:field ", 250) + `"}`)},
		{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(`{"f:status":"` + strings.Repeat("f:field ", 150) + `"}`)},
	}
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Image: "registry.example/app:1", ImageID: strings.Repeat("a", 64), ContainerID: strings.Repeat("b", 64)}}
}
