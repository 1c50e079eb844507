package bench

import (
	"regexp"
	"strings"
	"testing"
	_ "unsafe" // for go:linkname

	upstream "k8s.io/apimachinery/pkg/util/validation"

	_ "podenv.dev/staging/src/k8s.io/apimachinery/pkg/util/validation"
)

// The two rules export nothing: in a tree they are part of apimachinery's package,
// whose IsEnvVarName and IsRelaxedEnvVarName call them.

//go:linkname matchesStrictEnvVarName podenv.dev/staging/src/k8s.io/apimachinery/pkg/util/validation.matchesStrictEnvVarName
func matchesStrictEnvVarName(name string) bool

//go:linkname matchesRelaxedEnvVarName podenv.dev/staging/src/k8s.io/apimachinery/pkg/util/validation.matchesRelaxedEnvVarName
func matchesRelaxedEnvVarName(name string) bool

// envVarNameRegexp is upstream's own. Should upstream drop it, this does not link, and
// there is nothing left to compare strict names with.
//
//go:linkname envVarNameRegexp k8s.io/apimachinery/pkg/util/validation.envVarNameRegexp
var envVarNameRegexp *regexp.Regexp

// rule is what a name is held to, by us and by upstream.
type rule struct{ ours, kubernetes func(name string) bool }

var (
	// Of upstream's strict rule it is the part that ours takes the place of: the
	// refusal of "." and "..", which follows, is the same code in both.
	strict = rule{
		ours:       matchesStrictEnvVarName,
		kubernetes: func(name string) bool { return envVarNameRegexp.MatchString(name) },
	}
	relaxed = rule{
		ours:       matchesRelaxedEnvVarName,
		kubernetes: func(name string) bool { return len(upstream.IsRelaxedEnvVarName(name)) == 0 },
	}
)

// nameCases are names that both rules accept, as nearly all names in a cluster are.
var nameCases = []struct{ name, value string }{
	{name: "4_bytes", value: "PATH"},
	{name: "15_bytes", value: "KUBERNETES_PORT"},
	{name: "32_bytes", value: "MY_APPLICATION_DATABASE_PASSWORD"},
}

// BenchmarkStrict validates one name, as BenchmarkRelaxed does.
func BenchmarkStrict(b *testing.B)  { strict.benchmark(b) }
func BenchmarkRelaxed(b *testing.B) { relaxed.benchmark(b) }

func (r rule) benchmark(b *testing.B) {
	for _, c := range nameCases {
		for _, by := range []struct {
			name    string
			accepts func(name string) bool
		}{{"envvarname", r.ours}, {"kubernetes", r.kubernetes}} {
			b.Run(c.name+"/by="+by.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !by.accepts(c.value) {
						b.Fatalf("%q is refused", c.value)
					}
				}
			})
		}
	}
}

// Beside the names, what an API server is sent by mistake or on purpose: every byte at
// the start, in the middle and at the end of a name, and lengths.
func TestBothRulesAcceptWhatUpstreamAccepts(t *testing.T) {
	names := []string{"", ".", "..", "..a", "Logging:LogLevel:Default", "日本", "\xff\xfe"}
	for b := range 256 {
		c := string([]byte{byte(b)})
		names = append(names, c, c+"bcdefgh", "abc"+c+"efgh", "abcdefg"+c)
	}
	for length := range 70 {
		long := strings.Repeat("n", length)
		names = append(names, long, long+"=", long+" ", "9"+long)
	}
	for rule, by := range map[string]rule{"strict": strict, "relaxed": relaxed} {
		accepted := 0
		for _, name := range names {
			ours, kubernetes := by.ours(name), by.kubernetes(name)
			if ours != kubernetes {
				t.Errorf("%s, %q: upstream accepts it: %t, we: %t", rule, name, kubernetes, ours)
			}
			if ours {
				accepted++
			}
		}
		if accepted == 0 || accepted == len(names) {
			t.Errorf("%s: %d of %d names are accepted, which shows nothing", rule, accepted, len(names))
		}
	}
}
