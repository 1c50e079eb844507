package validation

import (
	"regexp"
	"strings"
	"testing"
)

// envVarNameRules are the two rules, each beside the regular expression of
// KEP-4369 that it must agree with.
var envVarNameRules = []struct {
	name    string
	matches func(string) bool
	regexp  *regexp.Regexp
}{
	{"strict", matchesStrictEnvVarName, regexp.MustCompile(`^[-._a-zA-Z][-._a-zA-Z0-9]*$`)},
	{"relaxed", matchesRelaxedEnvVarName, regexp.MustCompile(`^[ -<>-~]+$`)},
}

func TestEnvVarNameRulesAreThoseOfTheKEP(t *testing.T) {
	names := []string{
		"", ".", "..", "...", "..a", "a..", "-", "_", "a=b", "=", "A\n", "\nA", "A\x00",
		"Logging:LogLevel:Default", "two  words", `"quoted"`, "$(A)", "1ST", "Ä", "日本", "A\u00a0B", "\xff\xfe",
	}
	for b := 0; b < 256; b++ {
		c := string([]byte{byte(b)})
		// Bytes are looked at in fours: each place among them, and what is left.
		for length := 0; length < 12; length++ {
			for at := 0; at <= length; at++ {
				names = append(names, strings.Repeat("a", at)+c+strings.Repeat("b", length-at))
			}
		}
		for b2 := 0; b2 < 256; b2++ {
			names = append(names, c+string([]byte{byte(b2)}))
		}
	}
	for _, length := range []int{3, 63, 64, 127, 128, 129, 253, 254, 4096, 1 << 20} {
		long := strings.Repeat("a", length)
		names = append(names, long, "9"+long, long+"9", long+" ", long+"=", long+"\x7f", long+"\n")
	}

	for _, rule := range envVarNameRules {
		accepted := 0
		for _, name := range names {
			got := rule.matches(name)
			if want := rule.regexp.MatchString(name); got != want {
				if len(name) > 40 {
					name = name[:10] + "..." + name[len(name)-10:]
				}
				t.Errorf("%s, %q: want %v, got %v", rule.name, name, want, got)
			}
			if got {
				accepted++
			}
		}
		if accepted == 0 || accepted == len(names) {
			t.Errorf("%s: accepted %d of %d names, which shows nothing", rule.name, accepted, len(names))
		}
	}
}

// FuzzEnvVarName shows that the rules are the regular expressions of the KEP for every
// name.
func FuzzEnvVarName(f *testing.F) {
	for _, name := range []string{"", "PATH", ".", "..a", "1ST", "A=B", "A\n", "Logging:LogLevel:Default", "日本", "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, rule := range envVarNameRules {
			if want, got := rule.regexp.MatchString(name), rule.matches(name); got != want {
				t.Fatalf("%s, %q: want %v, got %v", rule.name, name, want, got)
			}
		}
	})
}

// The figures to compare are those of one rule and one name.
func BenchmarkEnvVarName(b *testing.B) {
	for _, rule := range envVarNameRules {
		for _, name := range []string{"PATH", "MY_APPLICATION_DATABASE_PASSWORD"} {
			for _, by := range []struct {
				name    string
				matches func(string) bool
			}{{"table", rule.matches}, {"regexp", rule.regexp.MatchString}} {
				b.Run(rule.name+"/"+name+"/"+by.name, func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; i < b.N; i++ {
						if !by.matches(name) {
							b.Fatalf("%q does not match", name)
						}
					}
				})
			}
		}
	}
}
