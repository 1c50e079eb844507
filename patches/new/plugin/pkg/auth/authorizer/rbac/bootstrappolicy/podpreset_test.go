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
