/*
Copyright 2026 The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
