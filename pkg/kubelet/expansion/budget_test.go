package expansion

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// bomb refers ten times to the variable before, again and again: a<n> has a<n-1>.
func bomb(variables int) (env []string) {
	env = append(env, "a0="+strings.Repeat("x", 1000))
	for i := 1; i < variables; i++ {
		env = append(env, fmt.Sprintf("a%d=%s", i, strings.Repeat(fmt.Sprintf("$(a%d)", i-1), 10)))
	}
	return env
}

// expandEnv does for env, NAME=VALUE, what the kubelet does. A variable without a value has
// another source, which sets it to nothing.
func expandEnv(env []string) error {
	var budget Budget
	variables := map[string]string{}
	for _, declaration := range env {
		name, value, _ := strings.Cut(declaration, "=")
		if value == "" {
			budget.Release(name)
			variables[name] = ""
			continue
		}
		variables[name] = budget.ExpandEnv(name, value, MappingFuncFor(nil, variables))
	}
	return budget.CheckEnv(variables)
}

// expandAllOf does for a command that refers to value what the kubelet does.
func expandAllOf(value string, words ...string) error {
	var budget Budget
	_, err := budget.ExpandAll("command", words, MappingFuncFor(nil, map[string]string{"A": value, "EMPTY": ""}))
	return err
}

func TestAProcessIsGivenWhatItCanBe(t *testing.T) {
	longest := strings.Repeat("x", MaxString)
	tooLong := "the result is longer than a process can be given (131071 bytes, with the name of a variable)"
	tooMuch := "it and what was expanded before are more than a process can be given (6291456 bytes)"
	all := "cannot expand the variables: with what they refer to they are more than a process can be given (6291456 bytes)"
	if MaxString != 131071 {
		tooLong = errString.Error()
	}
	half := strings.Repeat("x", MaxString/2+1)
	times := MaxStrings/(MaxString+1) + 1
	full := []string{"A=" + longest[len("00="):]}
	for i := 0; i < times-1; i++ {
		full = append(full, fmt.Sprintf("%02d=$(A)", i))
	}
	values := func(value string) (env []string) {
		for i := 0; i < 5*times; i++ {
			env = append(env, fmt.Sprintf("%02X=%s", i, value))
		}
		return env
	}
	many := append([]string{full[0]}, values("$(A)")...)
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"a value as long as can be, with its name", expandEnv([]string{"A=" + longest[len("B="):], "B=$(A)"}), ""},
		{"a value that is longer", expandEnv([]string{"A=" + longest[len("B="):], "B=$(A)."}), `cannot expand variable "B": ` + tooLong},
		{"a value that is longer with the value before", expandEnv([]string{"A=" + longest[len("B="):], "B=.$(A)"}), `cannot expand variable "B": ` + tooLong},
		{"a value as long with a longer name", expandEnv([]string{"A=" + longest[len("B="):], "BB=$(A)"}), `cannot expand variable "BB": ` + tooLong},
		{"the first of the variables that are too long", expandEnv(bomb(15)), `cannot expand variable "a3": ` + tooLong},
		{"a value that is longer, in whose place is another", expandEnv(append(bomb(4), "a3=$(a0)", "B=$(a3)")), ""},
		{"a reference to a value that is longer, before another is in its place", expandEnv(append(bomb(4), "B=$(a3)", "a3=")), `cannot expand variable "B": ` + tooLong},
		{"what has no reference", expandEnv([]string{"A=" + longest + "..", "B=" + longest + " $B $(C"}), ""},
		{"what refers to nothing", expandEnv([]string{"A=" + longest + "$(B)"}), ""},
		{"a word as long as can be", expandAllOf(longest, "$(A)", "..."), ""},
		{"a word that is longer", expandAllOf(half, "$(A)", "$(A)$(A)"), "cannot expand command[1]: " + tooLong},
		{"a word that is longer with what follows", expandAllOf(longest, "$(A)."), "cannot expand command[0]: " + tooLong},
		{"words that are as much as can be", expandAllOf(longest, repeat("$(A)", times-1)...), ""},
		{"an empty word more", expandAllOf(longest, append(repeat("$(A)", times-1), "$(EMPTY)")...), fmt.Sprintf("cannot expand command[%d]: ", times-1) + tooMuch},
		{"one more", expandAllOf(longest, repeat("$(A)", times)...), fmt.Sprintf("cannot expand command[%d]: ", times-1) + tooMuch},
		{"definitions that others replace", expandEnv(again(times)), ""},
		{"very many of these", expandEnv(again(16 * times)), ""},
		{"variables that are as much as can be", expandEnv(full), ""},
		{"one more variable", expandEnv(append(full, "99=$(A)")), all},
		{"very many variables, which others replace", expandEnv(append(many, values("x")...)), ""},
		{"very many variables, which others without a value replace", expandEnv(append(many, values("")...)), ""},
		{"very many variables, of which some are replaced", expandEnv(append(many, values("x")[:times]...)), `cannot expand variable "C1": ` + tooMuch},
		{"after very many variables, one of which is replaced, what refers to nothing", expandEnv(append(append(many, "E=$$(A)$(NO)"), values("x")...)), ""},
		{"one more in the place of another", expandEnv(append(full, "01=x", "99=$(A)")), ""},
		{"one more in the place of another that has no value any more", expandEnv(append(full, "01=", "99=$(A)")), ""},
		{"two more in the place of that", expandEnv(append(full, "01=", "01=", "98=$(A)", "99=$(A)")), all},
		{"a long name is shown shortened", expandEnv([]string{"A=" + longest[1:], strings.Repeat("B", 200) + "=$(A)."}), `cannot expand variable "` + strings.Repeat("B", 64) + `...": ` + tooLong},
	} {
		got := ""
		if tc.err != nil {
			got = tc.err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: want %q, got %q", tc.name, tc.want, got)
		}
	}
}

// What is left out could not be given to a process either, with what is returned.
func TestWhatIsTooLongIsReturnedTooLong(t *testing.T) {
	value := strings.Repeat("x", 1000)
	var budget Budget
	mapping := MappingFuncFor(nil, map[string]string{"A": value})
	all, err := budget.ExpandAll("args", []string{"first", strings.Repeat("$(A)", 1000), "last"}, mapping)
	if err == nil || len(all) != 2 || len(all[1]) <= MaxString || len(all[1]) > MaxString+len(value) {
		t.Errorf("got %d inputs and %v", len(all), err)
	}
	if got := len(Expand(strings.Repeat("$(A)", 1000), mapping)); got != len(all[1]) {
		t.Errorf("Expand: got %d bytes", got)
	}
}

// Unbounded, each of these would make gigabytes of a pod that etcd stores.
func TestABombCostsLittleMemory(t *testing.T) {
	value := strings.Repeat("x", 100_000)
	wide := []string{"A=" + value}
	for i := 0; i < 20_000; i++ {
		wide = append(wide, fmt.Sprintf("B%d=$(A)$$", i))
	}
	for name, explode := range map[string]func() error{
		"ten times the one before":  func() error { return expandEnv(bomb(15)) },
		"many variables":            func() error { return expandEnv(wide) },
		"many references":           func() error { return expandEnv([]string{"A=" + value, "B=" + strings.Repeat("$(A)", 100_000)}) },
		"many words":                func() error { return expandAllOf(value, repeat("$(A)$$", 100_000)...) },
		"many references in a word": func() error { return expandAllOf(value, strings.Repeat("$(A)", 100_000)) },
		"references to what is too long": func() error {
			return expandEnv(append([]string{"A=" + value, "B=$(A)$(A)"}, repeat("C=$(B)", 20_000)...))
		},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := explode()
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 64 || err == nil {
			t.Errorf("%s: %d MiB and %v", name, allocated, err)
		}
	}
}

// again defines B so many times as all that A has.
func again(times int) []string {
	return append([]string{"A=" + strings.Repeat("x", MaxString-len("B="))}, repeat("B=$(A)", times)...)
}

func repeat(word string, times int) []string {
	words := make([]string, times)
	for i := range words {
		words[i] = word
	}
	return words
}
