package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// parse parses an environment: the JSON of the envdump image, or the lines of env.
func parse(log string) ([]string, error) {
	if !strings.HasPrefix(log, "{") {
		return strings.Split(strings.TrimRight(log, "\n"), "\n"), nil
	}
	var document struct{ Env []string }
	if err := json.Unmarshal([]byte(log), &document); err != nil {
		return nil, fmt.Errorf("it printed %q: %w", log, err)
	}
	return document.Env, nil
}

// Print writes what each container saw as text: first the variables that the feature sets.
func Print(w io.Writer, results []Result) {
	for _, r := range results {
		fmt.Fprintf(w, "%s: container %s (%s) saw\n", strings.TrimSuffix(r.Pod, ".yaml"), r.Container, r.Image)
		env := slices.Clone(r.Env)
		slices.SortStableFunc(env, func(a, b string) int { return r.rank(a) - r.rank(b) })
		for _, entry := range env {
			note := ""
			if r.rank(entry) == 0 {
				note = "    <- from " + r.From
			}
			fmt.Fprintf(w, "    %s%s\n", entry, note)
		}
	}
}

// rank is 0 for a variable that the feature sets and 1 for any other.
func (r Result) rank(entry string) int {
	name, _, _ := strings.Cut(entry, "=")
	if slices.Contains(r.Sets, name) {
		return 0
	}
	return 1
}
