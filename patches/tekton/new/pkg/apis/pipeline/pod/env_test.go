package pod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// env reads variables from a line such as "A=1 B=$(A)".
func env(line string) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, word := range strings.Fields(line) {
		name, value, _ := strings.Cut(word, "=")
		vars = append(vars, corev1.EnvVar{Name: name, Value: value})
	}
	return vars
}

func TestOverrideEnv(t *testing.T) {
	for _, tc := range []struct{ name, base, overrides, want string }{
		{"no overrides", "A=1 B=2", "", "A=1 B=2"},
		{"no base", "", "B=2 A=1", "B=2 A=1"},
		{"an override stands in the place of the definition", "HOST=a URL=http://$(HOST)", "HOST=b", "HOST=b URL=http://$(HOST)"},
		{"an empty value overrides", "A=1", "A=", "A="},
		{"what only the overrides have stands behind", "A=1", "C=$(A) A=2", "A=2 C=$(A)"},
		{"an extension stands behind the definition", "PATH=/a X=$(PATH)", "PATH=$(PATH):/x", "PATH=/a PATH=$(PATH):/x X=$(PATH)"},
		{"an extension of what nobody defines", "A=1", "PATH=$(PATH):/x", "A=1 PATH=$(PATH):/x"},
		{"an escaped reference is no extension", "A=1 B=2", "A=$$(A)", "A=$$(A) B=2"},
		{"a reference behind an escape is one", "A=1 B=2", "A=$$$(A)", "A=1 A=$$$(A) B=2"},
		{"a definition and its extension", "PATH=/a B=2", "PATH=/b PATH=$(PATH):/x", "PATH=/b PATH=$(PATH):/x B=2"},
		{"an extension of a definition and its extension", "PATH=/a X=1 PATH=$(PATH):/b Y=$(PATH)", "PATH=$(PATH):/x", "PATH=/a PATH=$(PATH):/b PATH=$(PATH):/x X=1 Y=$(PATH)"},
		{"a name twice in base", "A=1 B=$(A) A=2", "A=3", "A=3 B=$(A)"},
		{"a name twice in the overrides", "A=1 B=2", "A=3 A=4", "A=4 B=2"},
		{"overrides that were merged with base", "PATH=$(PATH):/d B=2", "PATH=$(PATH):/d B=2 C=3", "PATH=$(PATH):/d B=2 C=3"},
		{"overrides that were merged, with an extension", "PATH=/d", "PATH=/d PATH=$(PATH):/x", "PATH=/d PATH=$(PATH):/x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			once := OverrideEnv(env(tc.base), env(tc.overrides))
			if d := cmp.Diff(env(tc.want), once); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}

// TestOverrideEnvTwice applies the same defaults again, as every update of a run does.
func TestOverrideEnvTwice(t *testing.T) {
	for _, tc := range []struct{ base, overrides string }{
		{"A=1 PATH=/d", "PATH=$(PATH):/x B=2 A=3"},
		{"PATH=$(PATH):/d", "PATH=$(PATH):/x"},
		{"PATH=$(PATH):/d", ""},
	} {
		once := OverrideEnv(env(tc.base), env(tc.overrides))
		if d := cmp.Diff(once, OverrideEnv(env(tc.base), once)); d != "" {
			t.Errorf("%s over %s: -once, +twice: %s", tc.overrides, tc.base, d)
		}
	}
}

func TestDefaultPodTemplateComesBeforeTheRuns(t *testing.T) {
	got := MergePodTemplateWithDefault(&Template{Env: env("RUN=$(HOST) HOST=run")}, &Template{Env: env("HOST=default URL=$(HOST)")})
	if d := cmp.Diff(env("HOST=run URL=$(HOST) RUN=$(HOST)"), got.Env); d != "" {
		t.Errorf("-want, +got: %s", d)
	}
}
