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
