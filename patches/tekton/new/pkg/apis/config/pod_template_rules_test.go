/*
Copyright 2026 The Tekton Authors

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

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tektoncd/pipeline/pkg/apis/config"
)

func TestPodTemplateRules(t *testing.T) {
	for _, tc := range []struct {
		name    string
		data    map[string]string
		want    []string
		wantErr string
	}{
		{"the example of TEP-0101", map[string]string{"pod-template-rules": "forbidden-env-variables:\n- \"HTTP_PROXY\"\n"}, []string{"HTTP_PROXY"}, ""},
		{"both keys", map[string]string{
			"pod-template-rules":    "forbidden-env-variables: [B, A]",
			"default-forbidden-env": "C, A",
		}, []string{"A", "B", "C"}, ""},
		{"no names", map[string]string{"pod-template-rules": "forbidden-env-variables: []"}, nil, ""},
		{"empty", map[string]string{"pod-template-rules": ""}, nil, ""},
		{"another key", map[string]string{"pod-template-rules": "forbidden-envs: [A]"}, nil, `unknown field "forbidden-envs"`},
		{"no YAML", map[string]string{"pod-template-rules": "forbidden-env-variables: ["}, nil, `failed parsing default config "pod-template-rules"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := config.NewDefaultsFromMap(tc.data)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want %q in it", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got.DefaultForbiddenEnv); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}
