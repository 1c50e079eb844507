package pod

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestEnvIsExpandedAsInStockTekton has what FuzzEnvIsExpandedAsInStockTekton looks for, by name.
func TestEnvIsExpandedAsInStockTekton(t *testing.T) {
	for _, tc := range [][4]string{ // step, taskRunSpecs, run, defaults
		{"URL=http://old", "", "HOST=db URL=http://$(HOST)", ""},
		{"URL=http://old HOST=a", "", "URL=http://$(HOST)", ""},
		{"PATH=/a", "", "OLD=$(PATH) PATH=/x:$(OLD)", ""},
		{"URL=old HOST=a", "", "URL=$(HOST) HOST=$(URL)", ""},
		{"URL=old X=$(URL) HOST=$(X)", "", "URL=http://$(HOST)", ""},
		{"A=0 N=1", "", "X=$(N) N=$(X) A=$(X)", ""},
		{"A=0 Y=$(U) U=1", "", "U=$(Q) Q=$(U) A=$(Y)", ""},
		{"H=1 PATH=$(H):/a", "", "H=$(PATH) PATH=$(PATH):/x", ""},
		{"B=1", "X=1 N=$(X) X=2", "N=0 X=1 N=$(X) B=$(N)", ""},
		{"", "", "HOST=db", "URL=http://$(HOST)"},
		{"", "", "HOST=db", "URL=http://$(HOST) HOST=a"},
		{"", "", "B=$(A)", "A=$(B)"},
		{"", "Y=$(Z)", "Z=1", "Y=$(Z) Z=2"},
		{"", "", "B=1", "A=1 A=2"},
		{"", "", "A=$(A)x", "A=1 B=$(A) A=2"},
		{"PATH=/a", "PATH=$(PATH):/y", "PATH=$(PATH):/x", "PATH=$(PATH):/d"},
		{"", "", "A=$(URL) HOST=$(URL) URL=$(HOST) X=1", "A=0 Y=$(X) URL=$(Y) HOST=b"},
		{"A=$$(A)", "A=$$$(A)", "$=$(", "(=$()$$$(A)"},
	} {
		compareWithStock(t, env(tc[0]), env(tc[1]), env(tc[2]), env(tc[3]))
	}
}

func TestMadeUpEnvIsExpandedAsInStockTekton(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	madeUp := func() []corev1.EnvVar {
		data := make([]byte, 2*random.IntN(6))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		return envOf(data)
	}
	for range 10_000 {
		compareWithStock(t, madeUp(), madeUp(), madeUp(), madeUp())
		if t.Failed() {
			return
		}
	}
}

func FuzzEnvIsExpandedAsInStockTekton(f *testing.F) {
	f.Add([]byte("\x00\x02\x01\x00"), []byte(nil), []byte("\x00\x02\x01\x01"), []byte("\x02\x01"))
	f.Fuzz(func(t *testing.T, step, specs, run, defaults []byte) {
		if len(step)+len(specs)+len(run)+len(defaults) > 80 {
			return // 40 variables have every order; more only take longer
		}
		compareWithStock(t, envOf(step), envOf(specs), envOf(run), envOf(defaults))
	})
}

// envOf makes a variable of every two bytes: its name, and the names that its value refers to, or its
// source, which may yield nothing.
func envOf(data []byte) []corev1.EnvVar {
	var vars []corev1.EnvVar
	for pair := range slices.Chunk(data[:len(data)/2*2], 2) {
		e := corev1.EnvVar{Name: string("ABCDE"[pair[0]%5])}
		if pair[0] < 192 {
			e.Value = string('0' + pair[1]>>5)
			for n, name := range "ABCDE" {
				if pair[1]&(1<<n) != 0 {
					e.Value += "$(" + string(name) + ")"
				}
			}
		} else {
			e.ValueFrom = sources[int(pair[1])%len(sources)]
		}
		vars = append(vars, e)
	}
	return vars
}

// sources are one that always yields a value, and some that may yield nothing.
var sources = []*corev1.EnvVarSource{
	{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}},
	{SecretKeyRef: &corev1.SecretKeySelector{Key: "k", Optional: ptr.To(true)}},
	{SecretKeyRef: &corev1.SecretKeySelector{Key: "l", Optional: ptr.To(true)}},
	{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k", Optional: ptr.To(true)}},
	{FileKeyRef: &corev1.FileKeySelector{Key: "k"}},
}

// thatYield leaves out the variables whose source yields nothing: bit n of nothing is that of sources[n].
func thatYield(env []corev1.EnvVar, nothing int) []corev1.EnvVar {
	return slices.DeleteFunc(slices.Clone(env), func(e corev1.EnvVar) bool {
		n := slices.Index(sources, e.ValueFrom)
		return mayYieldNothing(e.ValueFrom) && nothing&(1<<n) != 0
	})
}

// compareWithStock merges the variables of a step, of two pod templates of a run and of the default
// pod template. Each reference that is expanded with the merge of stock Tekton is expanded here too,
// the definition of highest precedence that yields a value is in force, and neither merging again nor
// applying the run's manifest again changes anything.
func compareWithStock(t *testing.T, step, specs, run, defaults []corev1.EnvVar) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("step %q, taskRunSpecs %q, run %q, defaults %q", line(step), line(specs), line(run), line(defaults))
		}
	}()
	for _, old := range [][]corev1.EnvVar{mergeEnv(defaults, run), mergeByName(defaults, run)} {
		updated := TemplateAfterUpdate(&Template{Env: run}, &Template{Env: old}, &Template{Env: defaults})
		if d := cmp.Diff(line(old), line(updated.Env)); d != "" {
			t.Errorf("applied again: -old, +updated: %s", d)
		}
	}
	stock := append(slices.Clone(step), mergeByName(defaults, mergeByName(run, specs))...)
	got := OverrideEnv(step, mergeTwice(t, defaults, mergeTwice(t, run, specs)))
	all := slices.Concat(step, defaults, run, specs)
	mayYield := 0
	for n, source := range sources {
		if mayYieldNothing(source) && slices.ContainsFunc(all, func(e corev1.EnvVar) bool { return e.ValueFrom == source }) {
			mayYield |= 1 << n
		}
	}
	for nothing := mayYield; !t.Failed(); nothing = (nothing - 1) & mayYield { // each subset
		compareExpansions(t, thatYield(stock, nothing), thatYield(got, nothing), thatYield(all, nothing))
		if nothing == 0 {
			return
		}
	}
}

// compareExpansions has the variables that yield a value: of both merges, and all in the order of precedence.
func compareExpansions(t *testing.T, stock, got, all []corev1.EnvVar) {
	t.Helper()
	highest, inForce := map[string]string{}, map[string]string{}
	for _, e := range all {
		highest[e.Name] = text(e)
	}
	for _, e := range got {
		inForce[e.Name] = text(e)
	}
	if d := cmp.Diff(highest, inForce); d != "" {
		t.Errorf("in force: -highest precedence, +got: %s", d)
	}
	want, is := expansions(stock), expansions(got)
	times := map[[2]string]int{}
	for _, e := range all {
		times[[2]string{e.Name, text(e)}]++
	}
	for e, names := range want {
		if times[e] > 1 && inForce[e[0]] != e[1] {
			continue // which of the equal definitions is left is not to be seen
		}
		for name := range names {
			if _, kept := is[e]; kept && !is[e][name] {
				t.Errorf("%s=%s: stock Tekton expands $(%s)\nstock: %s\ngot:   %s", e[0], e[1], name, line(stock), line(got))
			}
		}
	}
}

// mergeTwice merges env with defaults, and the result with the same defaults again.
func mergeTwice(t *testing.T, defaults, env []corev1.EnvVar) []corev1.EnvVar {
	t.Helper()
	merge := func(env []corev1.EnvVar) []corev1.EnvVar {
		return MergePodTemplateWithDefault(&Template{Env: env}, &Template{Env: defaults}).Env
	}
	once := merge(env)
	if d := cmp.Diff(line(once), line(merge(once))); d != "" {
		t.Errorf("%q over %q: -once, +twice: %s", line(env), line(defaults), d)
	}
	return once
}

// expansions has for each definition, by name and value, the references that the kubelet expands.
// Of equal definitions the last one counts.
func expansions(env []corev1.EnvVar) map[[2]string]map[string]bool {
	defined, all := map[string]bool{}, map[[2]string]map[string]bool{}
	for _, e := range env {
		expanded := map[string]bool{}
		for _, part := range strings.Split(strings.ReplaceAll(e.Value, "$$", ""), "$(")[1:] {
			if name, _, closed := strings.Cut(part, ")"); closed && defined[name] {
				expanded[name] = true
			}
		}
		all[[2]string{e.Name, text(e)}] = expanded
		defined[e.Name] = true
	}
	return all
}

// line is the opposite of env.
func line(env []corev1.EnvVar) string {
	var words []string
	for _, e := range env {
		words = append(words, e.Name+"="+text(e))
	}
	return strings.Join(words, " ")
}

// text is the value of a variable, or its source: "secret?k" is key k of a Secret, if it is there.
func text(e corev1.EnvVar) string {
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.ConfigMapKeyRef != nil:
		return "configMap?" + from.ConfigMapKeyRef.Key
	case from.FileKeyRef != nil:
		return "file?" + from.FileKeyRef.Key
	case ptr.Deref(from.SecretKeyRef.Optional, false):
		return "secret?" + from.SecretKeyRef.Key
	default:
		return "secret:" + from.SecretKeyRef.Key
	}
}
