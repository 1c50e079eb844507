package preset

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEditedPresetReplacesItsStoredVersion is why an edited preset is in no conflict with what
// the cluster still has.
func TestEditedPresetReplacesItsStoredVersion(t *testing.T) {
	made := func(name, value, uid string) *PodPreset {
		p := &PodPreset{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		if uid != "" { // those of files have none
			p.UID, p.CreationTimestamp = "u", metav1.Now()
		}
		p.Spec.Selector.MatchLabels = map[string]string{"a": "b"}
		p.Spec.Env = []corev1.EnvVar{{Name: "A", Value: value}}
		return p
	}
	cluster := []*PodPreset{made("edited", "1", "u"), made("same", "1", "u"), made("other", "1", "u")}
	got := stored(cluster, []*PodPreset{made("same", "1", ""), made("edited", "2", ""), made("new", "1", "")})
	want := []struct{ name, value, uid string }{{"same", "1", "u"}, {"other", "1", "u"}, {"edited", "2", ""}, {"new", "1", ""}}
	if len(got) != len(want) || len(cluster) != 3 || cluster[0].Name != "edited" {
		t.Fatalf("%d presets, want %d, and those of the cluster as they were", len(got), len(want))
	}
	for i, p := range got {
		if p.Name != want[i].name || p.Spec.Env[0].Value != want[i].value || string(p.UID) != want[i].uid {
			t.Errorf("preset %d is %s with A=%s and UID %q, want %v", i, p.Name, p.Spec.Env[0].Value, p.UID, want[i])
		}
	}
}
