package bootstrappolicy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	rbacv1helpers "k8s.io/kubernetes/pkg/apis/rbac/v1"
	"k8s.io/kubernetes/pkg/features"
)

const settingsGroup = "settings.k8s.io"

// addPodPresetRules gives the roles edit and view, and through edit the role admin, their
// rules for PodPresets while the gate is on. Whoever writes a PodPreset changes the pods of
// others in the namespace, which edit can do anyway.
func addPodPresetRules(roles []rbacv1.ClusterRole) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.PodPreset) {
		return
	}
	verbs := map[string][]string{
		"system:aggregate-to-edit": Write,
		"system:aggregate-to-view": Read,
	}
	for i := range roles {
		if v, ok := verbs[roles[i].Name]; ok {
			roles[i].Rules = append(roles[i].Rules, rbacv1helpers.NewRule(v...).Groups(settingsGroup).Resources("podpresets").RuleOrDie())
		}
	}
}
