package main

import (
	"cmp"
	"slices"
	"strings"

	"podenv.dev/hack/internal/bench"
)

const (
	secPerOp = "sec/op"
	upstream = "kubernetes" // in names of benchmarks of upstream's code
	envfile  = "envfile"
)

// faster is the goal that ours is at least so many times as fast as upstream's code.
func faster(benchmark, ours string, times float64) bench.Goal {
	return bench.Goal{
		What: label(benchmark) + ": " + upstream + " / " + ours, AtLeast: true, Limit: times, Unit: secPerOp,
		Numerator: []string{benchmark + "/by=" + upstream}, Denominator: []string{benchmark + "/by=" + ours},
	}
}

// within is the goal that reading takes at most so many times as long as os.ReadFile.
func within(benchmark string, times float64) bench.Goal {
	return bench.Goal{
		What: label(benchmark) + ": " + envfile + " / os.ReadFile", Limit: times, Unit: secPerOp,
		Numerator: []string{benchmark + "/by=" + envfile}, Denominator: []string{benchmark + "/by=os.ReadFile"},
	}
}

// goalsOf returns the goals of a group of benchmarks that measured m.
func goalsOf(group string, m bench.Medians) []bench.Goal {
	switch group {
	case "envfile":
		return []bench.Goal{
			faster("Read/1000_keys_of_1000", envfile, 500),
			faster("Read/100_keys_of_1000", envfile, 50),
			faster("Read/100_keys_of_100", envfile, 50),
			faster("Read/the_last_key_of_1000", envfile, 3),
			within("Read/1000_keys_of_1000", 2),
			within("Read/100_keys_of_1000", 2),
			within("Read/the_last_key_of_1000", 2),
			within("Read/2_values_of_32_KiB", 2),
			{
				What: "parse 2 values of 32 KiB: B/s", AtLeast: true, Limit: 1e9, Unit: "B/s",
				Numerator: []string{"Parse/2_values_of_32_KiB/by=" + envfile},
			},
			{
				What: "parse one key: allocations, of 1000 / of 10", Limit: 1, Unit: "allocs/op",
				Numerator: []string{"Parse/the_last_key_of_1000/by=" + envfile}, Denominator: []string{"Parse/the_last_key_of_10/by=" + envfile},
			},
		}
	case "names":
		var goals []bench.Goal
		for _, length := range []string{"4_bytes", "15_bytes", "32_bytes"} {
			// For strict names upstream has a regular expression, for relaxed ones it has none.
			goals = append(goals, faster("Strict/"+length, "envvarname", 20), faster("Relaxed/"+length, "envvarname", 1))
		}
		return goals
	case "expansion":
		return append(worstExpansion(m),
			faster("Keep/a_flag", "expansion", 2),
			faster("Keep/a_line_of_80_bytes", "expansion", 2),
			faster("Keep/a_script_of_64_KiB", "expansion", 2),
			faster("Keep/variables_of_a_shell", "expansion", 2))
	case "kubelet":
		const prefix = "MakeEnvironmentVariables/"
		return []bench.Goal{{
			What: "100 fileKeyRefs / (100 literal values + one reading)", Limit: 1.5, Unit: secPerOp,
			Numerator: []string{prefix + "fileKeyRefs"}, Denominator: []string{prefix + "literals", prefix + "read"},
		}}
	case "admission":
		const none, three = "Admission/no_presets", "Admission/3_of_100_presets_match"
		return []bench.Goal{
			{What: label(none) + ": s", Limit: 1e-6, Unit: secPerOp, Numerator: []string{none}},
			{What: label(none) + ": allocations", Limit: 0, Unit: "allocs/op", Numerator: []string{none}},
			{What: label(three) + ": s", Limit: 50e-6, Unit: secPerOp, Numerator: []string{three}},
		}
	}
	return nil
}

// worstExpansion is the goal that the slowest of upstream's cases is as fast as with upstream's
// code.
func worstExpansion(m bench.Medians) []bench.Goal {
	var goals []bench.Goal
	for key := range m {
		if name, ours := strings.CutSuffix(key[0], "/by=expansion"); ours && key[1] == secPerOp && strings.HasPrefix(name, "Expand/") {
			goals = append(goals, faster(name, "expansion", 1))
		}
	}
	if len(goals) == 0 {
		return []bench.Goal{faster("Expand/whole_string", "expansion", 1)} // its error says that nothing ran
	}
	worst := slices.MinFunc(goals, func(a, b bench.Goal) int {
		ratioA, _ := a.Ratio(m)
		ratioB, _ := b.Ratio(m)
		return cmp.Or(cmp.Compare(ratioA, ratioB), cmp.Compare(a.What, b.What))
	})
	worst.What += ", the worst of upstream's cases"
	return []bench.Goal{worst}
}

// label turns "Read/1000_keys_of_1000" into "read 1000 keys of 1000".
func label(benchmark string) string {
	function, sub, _ := strings.Cut(benchmark, "/")
	return strings.ToLower(function) + " " + strings.ReplaceAll(sub, "_", " ")
}
