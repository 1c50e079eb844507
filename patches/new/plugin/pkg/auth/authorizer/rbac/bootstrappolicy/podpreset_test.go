package bootstrappolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/features/featurestest"
)

func TestRolesHavePodPresetsWhileTheGateIsOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   bool
		want map[string][]string
	}{
		{"on", true, map[string][]string{
			"system:aggregate-to-edit": {"create", "delete", "deletecollection", "patch", "update"},
			"system:aggregate-to-view": {"get", "list", "watch"},
		}},
		{"off", false, map[string][]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			featurestest.SetGate(t, features.PodPreset, tt.on)
			got := map[string][]string{}
			for _, role := range ClusterRoles() {
				for _, rule := range role.Rules {
					for _, group := range rule.APIGroups {
						if group == "settings.k8s.io" {
							got[role.Name] = append(got[role.Name], rule.Verbs...)
						}
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verbs for podpresets by role (-want +got):\n%s", diff)
			}
		})
	}
}
