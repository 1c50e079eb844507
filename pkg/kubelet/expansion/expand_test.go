package expansion

import (
	"strings"
	"testing"
	"time"

	forked "k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// documentVariables is the mapping that the document's examples are in.
var documentVariables = map[string]string{
	"VAR_A":     "A",
	"VAR_B":     "B",
	"VAR_C":     "C",
	"VAR_REF":   "$(VAR_A)",
	"VAR_EMPTY": "",
}

// documentExamples is the table of inputs and results at the end of the document,
// in its order. The document writes inputs as Go does, and results as they are. Its
// last row lacks a quote; there the result is the input.
var documentExamples = []struct{ input, result string }{
	{"$(VAR_A)", `A`},
	{"___$(VAR_B)___", `___B___`},
	{"___$(VAR_C)", `___C`},
	{"$(VAR_A)-$(VAR_A)", `A-A`},
	{"$(VAR_A)-1", `A-1`},
	{"$(VAR_A)_$(VAR_B)_$(VAR_C)", `A_B_C`},
	{"$$(VAR_B)_$(VAR_A)", `$(VAR_B)_A`},
	{"$$(VAR_A)_$$(VAR_B)", `$(VAR_A)_$(VAR_B)`},
	{"f000-$$VAR_A", `f000-$VAR_A`},
	{"foo\\$(VAR_C)bar", `foo\Cbar`},
	{"foo\\\\$(VAR_C)bar", `foo\\Cbar`},
	{"foo\\\\\\\\$(VAR_A)bar", `foo\\\\Abar`},
	{"$(VAR_A$(VAR_B))", `$(VAR_A$(VAR_B))`},
	{"$(VAR_A$(VAR_B)", `$(VAR_A$(VAR_B)`},
	{"$(VAR_REF)", `$(VAR_A)`},
	{"%%$(VAR_REF)--$(VAR_REF)%%", `%%$(VAR_A)--$(VAR_A)%%`},
	{"foo$(VAR_EMPTY)bar", `foobar`},
	{"foo$(VAR_Awhoops!", `foo$(VAR_Awhoops!`},
	{"f00__(VAR_A)__", `f00__(VAR_A)__`},
	{"$?_boo_$!", `$?_boo_$!`},
	{"$VAR_A", `$VAR_A`},
	{"$(VAR_DNE)", `$(VAR_DNE)`},
	{"$$$$$$(BIG_MONEY)", `$$$(BIG_MONEY)`},
	{"$$$$$$(VAR_A)", `$$$(VAR_A)`},
	{"$$$$$$$(GOOD_ODDS)", `$$$$(GOOD_ODDS)`},
	{"$$$$$$$(VAR_A)", `$$$A`},
	{"$VAR_A)", `$VAR_A)`},
	{"${VAR_A}", `${VAR_A}`},
	{"$(VAR_B)_______$(A", `B_______$(A`},
	{"$(VAR_C)_______$(", `C_______$(`},
	{"$(VAR_A)foobarzab$", `Afoobarzab$`},
	{"foo-\\$(VAR_A", `foo-\$(VAR_A`},
	{"--$($($($($--", `--$($($($($--`},
	{"$($($($($--foo$(", `$($($($($--foo$(`},
	{"foo0--$($($($(", `foo0--$($($($(`},
	{"$(foo$$var)", `$(foo$$var)`},
}

func TestExpandHoldsForEveryRowOfTheDocument(t *testing.T) {
	oneContext := MappingFuncFor(nil, documentVariables)
	twoContexts := MappingFuncFor(nil,
		map[string]string{"VAR_A": "A", "VAR_EMPTY": ""},
		map[string]string{"VAR_A": "shadowed", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)"},
	)
	for _, row := range documentExamples {
		t.Run(row.input, func(t *testing.T) {
			if got := Expand(row.input, oneContext); got != row.result {
				t.Errorf("want %q, got %q", row.result, got)
			}
			if got := Expand(row.input, twoContexts); got != row.result {
				t.Errorf("with two contexts: want %q, got %q", row.result, got)
			}
		})
	}
}

// What the document's table has no row for.
func TestExpandBeyondTheTable(t *testing.T) {
	for _, tc := range []struct{ name, input, want string }{
		{"the empty string", "", ""},
		{"a line end", "\n", "\n"},
		{"an operator and nothing else", "$", "$"},
		{"two operators", "$$", "$"},
		{"an operator before a line end", "a$\nb", "a$\nb"},
		{"an empty name", "$()", "$()"},
		{"a name of another script", "$(GRÖSSE)", "$(GRÖSSE)"},
		{"text of another script around a reference", "大$(VAR_A)小", "大A小"},
		{"a value is as long as it is", "$(LONG)$(LONG)", strings.Repeat("v", 2000)},
		{"an escape behind an unclosed reference", "$(VAR_A $$", "$(VAR_A $"},
		{"a closer behind a closed reference", "$(VAR_A))", "A)"},
		{"a closer before an opener", ")$(VAR_A", ")$(VAR_A"},
		{"a bare operator before a reference", "$x$(VAR_A)", "$xA"},
		{"bytes that are no character", "\xff$(VAR_A)\xfe", "\xffA\xfe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			mapping := MappingFuncFor(nil, documentVariables, map[string]string{"LONG": strings.Repeat("v", 1000)})
			if got := Expand(tc.input, mapping); got != tc.want {
				t.Errorf("want %q, got %q", tc.want, got)
			}
		})
	}
}

// Releases differ here, and each keeps its own result.
func TestExpandAfterAnOperatorBeforeAnotherScriptIsAsReleased(t *testing.T) {
	mapping := MappingFuncFor(nil, documentVariables)
	for _, input := range []string{"$£", "$(VAR_A)-$€-$(VAR_B)", "$$$中文$(VAR_A", "$\xff$(VAR_A)", "$\x80", "$(VAR_A $é)"} {
		if want, got := forked.Expand(input, mapping), Expand(input, mapping); got != want {
			t.Errorf("%q: want %q, got %q", input, want, got)
		}
	}
}

func TestExpandDoesNotCopyWhatItDoesNotChange(t *testing.T) {
	mapping := MappingFuncFor(nil, documentVariables)
	for _, input := range []string{"no operator", "$?", "an unclosed $(VAR_A", "100$"} {
		if allocations := testing.AllocsPerRun(10, func() { Expand(input, mapping) }); allocations != 0 {
			t.Errorf("%q: want no allocation, got %v", input, allocations)
		}
	}
}

// An argument can have a megabyte: looking for the closer at each opener would
// keep a node busy for minutes.
func TestExpandTakesTimeInProportionToTheInput(t *testing.T) {
	mapping := MappingFuncFor(nil)
	took := func(openers int) time.Duration {
		best := time.Hour
		input := strings.Repeat("$(", openers)
		for i := 0; i < 5; i++ {
			start := time.Now()
			Expand(input, mapping)
			best = min(best, time.Since(start))
		}
		return best
	}
	// 64 times the input takes 4096 times as long if each opener is looked up.
	if small, large := took(1<<12), took(1<<18); large > 1024*small {
		t.Errorf("%v for %d openers, %v for %d", small, 1<<12, large, 1<<18)
	}
}
