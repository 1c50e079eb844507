package bench

import (
	"slices"
	"strings"
	"testing"

	upstream "k8s.io/kubernetes/third_party/forked/golang/expansion"

	"podenv.dev/pkg/kubelet/expansion"
)

type expandCase struct{ name, input string }

// variables are those that upstream's cases refer to.
var variables = map[string]string{"VAR_A": "A", "VAR_B": "B", "VAR_C": "C", "VAR_REF": "$(VAR_A)", "VAR_EMPTY": ""}

// expandCases are the inputs of upstream's tests of Expand, which has no benchmarks,
// by the names that they have there.
var expandCases = []expandCase{
	{name: "whole_string", input: "$(VAR_A)"},
	{name: "repeat", input: "$(VAR_A)-$(VAR_A)"},
	{name: "beginning", input: "$(VAR_A)-1"},
	{name: "middle", input: "___$(VAR_B)___"},
	{name: "end", input: "___$(VAR_C)"},
	{name: "compound", input: "$(VAR_A)_$(VAR_B)_$(VAR_C)"},
	{name: "escape_&_expand", input: "$$(VAR_B)_$(VAR_A)"},
	{name: "compound_escape", input: "$$(VAR_A)_$$(VAR_B)"},
	{name: "mixed_in_escapes", input: "f000-$$VAR_A"},
	{name: "backslash_escape_ignored", input: `foo\$(VAR_C)bar`},
	{name: "two_backslashes", input: `foo\\$(VAR_C)bar`},
	{name: "lots_of_backslashes", input: `foo\\\\$(VAR_A)bar`},
	{name: "nested_var_references", input: "$(VAR_A$(VAR_B))"},
	{name: "nested_var_references_second_type", input: "$(VAR_A$(VAR_B)"},
	{name: "value_is_a_reference", input: "$(VAR_REF)"},
	{name: "value_is_a_reference_x_2", input: "%%$(VAR_REF)--$(VAR_REF)%%"},
	{name: "empty_var", input: "foo$(VAR_EMPTY)bar"},
	{name: "unterminated_expression", input: "foo$(VAR_Awhoops!"},
	{name: "expression_without_operator", input: "f00__(VAR_A)__"},
	{name: "shell_special_vars_pass_through", input: "$?_boo_$!"},
	{name: "bare_operators_are_ignored", input: "$VAR_A"},
	{name: "undefined_vars_are_passed_through", input: "$(VAR_DNE)"},
	{name: "even_operators,_var_undefined", input: "$$$$$$(BIG_MONEY)"},
	{name: "even_operators,_var_defined", input: "$$$$$$(VAR_A)"},
	{name: "odd_operators,_var_undefined", input: "$$$$$$$(GOOD_ODDS)"},
	{name: "odd_operators,_var_defined", input: "$$$$$$$(VAR_A)"},
	{name: "missing_open_expression", input: "$VAR_A)"},
	{name: "shell_syntax_ignored", input: "${VAR_A}"},
	{name: "trailing_incomplete_expression", input: "$(VAR_B)_______$(A"},
	{name: "trailing_incomplete_expression,_no_content", input: "$(VAR_C)_______$("},
	{name: "operator_at_end_of_input", input: "$(VAR_A)foobarzab$"},
	{name: "shell_escaped_incomplete_expr", input: `foo-\$(VAR_A`},
	{name: "lots_of_openers_in_middle", input: "--$($($($($--"},
	{name: "lots_of_openers_in_beginning", input: "$($($($($--foo$("},
	{name: "lots_of_openers_at_end", input: "foo0--$($($($("},
	{name: "escaped_operators_in_variable_names", input: "$(foo$$var)"},
	{name: "newline", input: "\n"},
	{name: "operator_and_non-ASCII_character", input: "$£FOO"},
	{name: "operator_and_multi-byte_character_in_middle", input: "prefix-$€-suffix"},
	{name: "operator_and_Chinese_character", input: "$中文"},
}

// keepCases are what most of env, command and args is: text without references.
var keepCases = []expandCase{
	{name: "a_flag", input: "--verbose"},
	{name: "a_line_of_80_bytes", input: strings.Repeat("word ", 16)},
	{name: "a_script_of_64_KiB", input: strings.Repeat("line of a script", 64<<10/16)},
	{name: "variables_of_a_shell", input: strings.Repeat(`echo "$HOME" ${1} $? `, 8)},
}

// expanders expand as a kubelet does, without an event for what is left.
var expanders = []struct {
	name   string
	expand func(input string) string
}{
	{"expansion", func(input string) string { return expansion.Expand(input, ourMapping) }},
	{"kubernetes", func(input string) string { return upstream.Expand(input, upstreamMapping) }},
}

var ourMapping, upstreamMapping = expansion.MappingFuncFor(nil, variables), upstream.MappingFuncFor(variables)

// BenchmarkExpand has upstream's cases, BenchmarkKeep those that stay as they are.
func BenchmarkExpand(b *testing.B) { benchmarkExpanders(b, expandCases) }
func BenchmarkKeep(b *testing.B)   { benchmarkExpanders(b, keepCases) }

func benchmarkExpanders(b *testing.B, cases []expandCase) {
	for _, c := range cases {
		for _, by := range expanders {
			b.Run(c.name+"/by="+by.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					by.expand(c.input)
				}
			})
		}
	}
}

func TestEveryCaseIsExpandedAsUpstreamDoes(t *testing.T) {
	for _, c := range slices.Concat(expandCases, keepCases) {
		want := upstream.Expand(c.input, upstreamMapping)
		if got := expansion.Expand(c.input, ourMapping); got != want {
			t.Errorf("%s, %.40q: want %.40q, got %.40q", c.name, c.input, want, got)
		}
	}
	for _, c := range keepCases {
		if got := expansion.Expand(c.input, ourMapping); got != c.input {
			t.Errorf("%s, %.40q: it has to stay, got %.40q", c.name, c.input, got)
		}
	}
}
