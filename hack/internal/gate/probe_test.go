package gate

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podenv.dev/featuregates"
)

// audited has what an API server logs at the level Request.
const audited = `{"verb":"create","userAgent":"e2e.test/v1.33.13 (linux/amd64) -- [sig-node] a","objectRef":{"resource":"pods","namespace":"a-1","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"one","uid":"u"},"spec":{"containers":[{"name":"c"}]},"status":{}}}
{"verb":"create","userAgent":"e2e.test/v1.33.13","objectRef":{"resource":"pods","namespace":"a-2","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"another name"},"spec":{"containers":[{"name":"c"}]}}}
{"verb":"create","userAgent":"e2e.test/v1.33.13","objectRef":{"resource":"pods","namespace":"a-1","apiVersion":"v1"},"responseStatus":{"code":422},"requestObject":{"kind":"Pod","apiVersion":"v1","spec":{"refused":true}}}
{"verb":"create","userAgent":"kube-controller-manager/v1.33.13","objectRef":{"resource":"pods","namespace":"a-1","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"Pod","apiVersion":"v1","spec":{"ofController":true}}}
{"verb":"create","userAgent":"e2e.test/v1.33.13","objectRef":{"resource":"pods","subresource":"eviction","namespace":"a-1","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"Eviction"}}
{"verb":"create","userAgent":"e2e.test/v1.33.13","objectRef":{"resource":"namespaces","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"Namespace"}}
{"verb":"create","userAgent":"e2e.test/v1.33.13","objectRef":{"resource":"priorityclasses","apiGroup":"scheduling.k8s.io","apiVersion":"v1"},"responseStatus":{"code":201},"requestObject":{"kind":"PriorityClass","apiVersion":"scheduling.k8s.io/v1","metadata":{"name":"p"},"value":1}}
`

func TestFromAuditTakesWhatSpecsCreated(t *testing.T) {
	probes, err := fromAudit(audited)
	if err != nil {
		t.Fatal(err)
	}
	if len(probes) != 2 {
		t.Fatalf("got %d objects, want a Pod and a PriorityClass: %v", len(probes), probes)
	}
	pod, class := probes[0], probes[1]
	if !pod.namespaced || pod.resource.Resource != "pods" || pod.object.Object["status"] != nil || pod.object.GetUID() != "" {
		t.Errorf("the pod is %+v", pod)
	}
	if class.namespaced || class.resource.Group != "scheduling.k8s.io" {
		t.Errorf("the class is %+v", class)
	}
	pod.object.SetFinalizers([]string{"of/a-spec"})
	pod.object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Job", Name: "gone"}})
	if made := pod.named("n", "x"); made.GetNamespace() != "n" || made.GetFinalizers() != nil || made.GetOwnerReferences() != nil {
		t.Errorf("made %v of %v", made, pod.object)
	}
	if made := pod.named("n", "x"); made.GetNamespace() != "n" || made.GetName() != "x" || pod.object.GetName() != "one" {
		t.Errorf("made %v of %v", made, pod.object)
	}
	if _, err := fromAudit("{\n"); err == nil || !strings.Contains(err.Error(), "audit log") {
		t.Errorf("error %v", err)
	}
	cut := strings.ReplaceAll(audited, "e2e.test/", "kubectl/") + `{"verb":"create","user`
	if probes, err := fromAudit(cut); err != nil || len(probes) != 2 {
		t.Errorf("with a line that is being written: %v, %v", probes, err)
	}
}

func TestWhatDecidesOverOthersIsNotStored(t *testing.T) {
	for resource, want := range map[string]bool{
		"pods": true, "storageclasses": true, "validatingadmissionpolicies": true, "customresourcedefinitions": true,
		"resourcequotas": false, "limitranges": false, "mutatingwebhookconfigurations": false, "validatingadmissionpolicybindings": false, "apiservices": false, "nodes": false,
	} {
		p := probe{resource: schema.GroupVersionResource{Resource: resource}, on: map[string]any{}}
		if got := p.storable(); got != want {
			t.Errorf("%s are stored: %t", resource, got)
		}
		if p.on = nil; p.storable() {
			t.Errorf("%s are stored though they were refused", resource)
		}
	}
}

func TestMissingNamesFields(t *testing.T) {
	object := func(spec map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"uid": "1", "labels": map[string]any{"a": "b"}}, "spec": spec, "status": map[string]any{"phase": "x"}}
	}
	a := object(map[string]any{"same": int64(1), "gone": true, "deep": []any{map[string]any{"kept": "1", "lost": "2"}}, "shorter": []any{1, 2}, "other": "x"})
	b := object(map[string]any{"same": float64(1), "deep": []any{map[string]any{"kept": "1"}}, "shorter": []any{1}, "other": "y", "added": 1})
	b["metadata"].(map[string]any)["uid"] = "2"
	delete(b, "status")
	got := missing(a, b)
	slices.Sort(got)
	want := []string{"spec.deep[].lost", "spec.gone", "spec.other", "spec.shorter"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := missing(a, a); len(got) != 0 {
		t.Errorf("equal objects differ: %q", got)
	}
}

func TestOnlyOnLeavesOutWhatComesWithUse(t *testing.T) {
	got := onlyOn([]string{"a: always", "a: gate", "a: used"}, []string{"a: always", "a: later"}, []string{"a: always", "a: gate", "a: new"})
	if !slices.Equal(got, []string{"a: gate"}) {
		t.Errorf("got %q", got)
	}
}

// TestAGateOfThisBranchHasItsDeclaredProbes, and no other gate has.
func TestAGateOfThisBranchHasItsDeclaredProbes(t *testing.T) {
	features, err := featuregates.Probed("v1.33")
	if err != nil || len(features) == 0 {
		t.Fatal(features, err)
	}
	for _, f := range features {
		needed, probes, err := declared("v1.33", string(f.Name))
		if err != nil || len(needed) != len(f.Probe.Objects) || len(probes) != len(needed)+1 || probes[len(needed)].resource.Resource != "pods" {
			t.Errorf("%s: needs %v, probes %v, %v", f.Name, needed, probes, err)
		}
	}
	if _, probes, err := declared("v1.33", "Other"); err != nil || len(probes) > 0 {
		t.Errorf("another gate has %v, %v", probes, err)
	}
}
