package pod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// env reads variables from a line such as "A=1 B=$(A) C=secret?k". The last has the source of that text.
func env(line string) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for _, word := range strings.Fields(line) {
		name, value, _ := strings.Cut(word, "=")
		e := corev1.EnvVar{Name: name, Value: value}
		for _, source := range sources {
			if text(corev1.EnvVar{ValueFrom: source}) == value {
				e.Value, e.ValueFrom = "", source
			}
		}
		vars = append(vars, e)
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
		{"what an override refers to moves in front of it", "A=1 URL=old B=2 HOST=a C=3", "URL=http://$(HOST)", "A=1 HOST=a URL=http://$(HOST) B=2 C=3"},
		{"several move in their order", "A=1 X=1 Y=2 Z=3", "A=$(Z)$(X)", "X=1 Z=3 A=$(Z)$(X) Y=2"},
		{"a variable of the template moves too", "A=1 B=2", "A=$(X) X=1", "X=1 A=$(X) B=2"},
		{"all definitions of a variable move", "A=1 W=1 W=2", "A=$(W)", "W=1 W=2 A=$(W)"},
		{"what is never seen moves nothing", "A=1 B=2 X=3", "A=$(X) A=2", "A=2 B=2 X=3"},
		{"a circle keeps its order", "URL=u HOST=h A=1", "URL=$(HOST) HOST=$(URL)", "HOST=h URL=$(HOST) HOST=$(URL) A=1"},
		{"a circle to a variable of the template", "PATH=/a B=$(PATH)", "OLD=$(PATH) PATH=/x:$(OLD)", "PATH=/a OLD=$(PATH) PATH=/x:$(OLD) B=$(PATH)"},
		{"a circle of what is defined twice", "C=0", "C=1 C=$(B)$(C) B=$(C)", "C=1 C=$(B)$(C) B=$(C)"},
		{"what a definition of a circle refers to", "A=0 H=1 URL=$(H) HOST=b", "A=$(URL) HOST=$(URL) URL=$(HOST)", "H=1 URL=$(H) HOST=$(URL) URL=$(HOST) A=$(URL)"},
		{"what a definition of a circle refers to is overridden", "A=0 N=1 URL=$(N) HOST=b", "N=2 A=$(N)$(URL) HOST=$(URL) URL=$(HOST)", "N=2 URL=$(N) HOST=$(URL) URL=$(HOST) A=$(N)$(URL)"},
		{"others are as they are", "W=1 W=2 A=0", "A=1", "W=1 W=2 A=1"},
		{"a reference to what follows stays as it is", "A=$(B) B=1 C=0", "C=1", "A=$(B) B=1 C=1"},
		{"also to what is overridden", "A=$(H) H=2", "H=3", "A=$(H) H=3"},
		{"also beside an override that refers to it", "A=$(H) H=2 C=0", "C=$(H)", "A=$(H) H=2 C=$(H)"},
		{"also in the template", "A=1", "X=$(Y) Y=1", "A=1 X=$(Y) Y=1"},
		{"what saw the first definition does", "A=0 W=$(A) A=1 B=$(A)", "C=3", "A=0 W=$(A) A=1 B=$(A) C=3"},
		{"an extension is overridden", "A=0 A=$(A)1 B=$(A)", "A=2", "A=2 B=$(A)"},
		{"what only the overrides have sees an override behind it", "A=1 H=1", "X=$(H) H=2", "A=1 H=2 X=$(H)"},
		{"an override and its extension in the place of two definitions", "A=0 A=1 B=2", "A=$(B) A=$(A)x", "B=2 A=$(B) A=$(A)x"},
		{"a definition that is replaced moves nothing", "A=0 C=$(B) B=1 A=$(B)", "A=9", "A=9 C=$(B) B=1"},
		{"nor does an override that is extended for its extension", "A=1$(E) E=0", "A=0$(A) A=2$(A)$(E)", "A=1$(E) A=0$(A) E=0 A=2$(A)$(E)"},
		{"a reference to what is overridden is no circle", "C=0 B=4$(C) C=0$(B)", "C=6", "C=6 B=4$(C)"},
		{"a dollar at the end, and a reference that is not closed", "A=1 B=2", "A=$(A$ B=$(B", "A=$(A$ B=$(B"},
		{"what may yield nothing stands behind the definition", "MSG=Default X=$(MSG)", "MSG=secret?k", "MSG=Default MSG=secret?k X=$(MSG)"},
		{"also a key of a ConfigMap", "A=1 B=2", "A=configMap?k", "A=1 A=configMap?k B=2"},
		{"also a key of a file, which a kubelet without EnvFiles skips", "A=1 B=2", "A=file?k", "A=1 A=file?k B=2"},
		{"what yields a value stands in the place of the definition", "A=1 B=2", "A=secret:k", "A=secret:k B=2"},
		{"each that may yield nothing stays", "A=1 B=2", "A=3 A=secret?k A=secret?l", "A=3 A=secret?k A=secret?l B=2"},
		{"what may yield nothing is overridden", "A=1 A=secret?k B=2", "A=3", "A=3 B=2"},
		{"two definitions, and one that saw the first", "A=0 B=9", "A=1 B=$(A) A=2", "A=2 B=$(A)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			once := OverrideEnv(env(tc.base), env(tc.overrides))
			if d := cmp.Diff(env(tc.want), once); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}

func TestDefaultPodTemplateComesBeforeTheRuns(t *testing.T) {
	for _, tc := range []struct{ name, defaults, run, want string }{
		{"an override stands in the place of the default", "HOST=default URL=$(HOST)", "RUN=$(HOST) HOST=run", "HOST=run URL=$(HOST) RUN=$(HOST)"},
		{"what a default refers to moves in front of it", "A=$(C)", "C=1", "C=1 A=$(C)"},
		{"also where it is an override", "A=$(C) C=0", "C=1", "C=1 A=$(C)"},
		{"but nothing in front of what moves", "A=$(C) A=$(C)x", "C=$(D) D=1", "C=$(D) A=$(C) A=$(C)x D=1"},
		{"a run that has all names is merged too", "HOST=default", "URL=$(HOST) HOST=run", "HOST=run URL=$(HOST)"},
		{"nothing moves for a default that is overridden", "A=$(C)", "A=0 C=1", "A=0 C=1"},
		{"a reference to a default that follows stays as it is", "A=$(B) B=1", "C=1", "A=$(B) B=1 C=1"},
		{"what saw the first definition does", "A=1 X=$(A) A=2", "B=1", "A=1 X=$(A) A=2 B=1"},
		{"nor for one that is extended", "E=0$(C)", "E=0$(E) C=0", "E=0$(C) E=0$(E) C=0"},
		{"all definitions of a default stay in a circle", "D=2$(E) D=6", "E=0$(D)", "E=0$(D) D=2$(E) D=6"},
		{"the run has the first word in a circle", "A=$(C)", "C=$(A)", "C=$(A) A=$(C)"},
		{"what may yield nothing stands behind the default", "MSG=d X=$(MSG)", "MSG=secret?k", "MSG=d MSG=secret?k X=$(MSG)"},
		{"what yields a value stands in the place of the default", "MSG=d", "MSG=secret:k", "MSG=secret:k"},
		{"a default that may yield nothing is overridden", "MSG=secret?k", "MSG=r", "MSG=r"},
		{"a value that is the default's", "HOST=db", "URL=http://$(HOST) HOST=db", "HOST=db URL=http://$(HOST)"},
		{"a reference that is the default's", "A=0 B=$(A)", "B=$(A) A=1", "A=1 B=$(A)"},
		{"both are the default's", "A=0 B=$(A)", "B=$(A) A=0", "A=0 B=$(A)"},
		{"a definition of several that is the default's", "A=0 A=1", "B=$(A) A=1", "A=1 B=$(A)"},
		{"also in a longer one", "A=$(C) B=$(A)", "C=$(B)", "C=$(B) A=$(C) B=$(A)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := MergePodTemplateWithDefault(&Template{Env: env(tc.run)}, &Template{Env: env(tc.defaults)})
			if d := cmp.Diff(env(tc.want), got.Env); d != "" {
				t.Errorf("-want, +got: %s", d)
			}
		})
	}
}
