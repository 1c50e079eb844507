package stories

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

// Print writes what each container saw as text: first the variables from env files.
func Print(w io.Writer, stories []Story) {
	for _, story := range stories {
		fmt.Fprintf(w, "%s: container %s (%s) saw\n", strings.TrimSuffix(story.Manifest, ".yaml"), story.Container, story.Image)
		env := slices.Clone(story.Env)
		slices.SortStableFunc(env, func(a, b string) int { return rank(story, a) - rank(story, b) })
		for _, entry := range env {
			note := ""
			if rank(story, entry) == 0 {
				note = "    <- from the env file"
			}
			fmt.Fprintf(w, "    %s%s\n", entry, note)
		}
	}
}

// rank is 0 for a variable from an env file and 1 for any other.
func rank(story Story, entry string) int {
	name, _, _ := strings.Cut(entry, "=")
	if slices.Contains(story.FromFile, name) {
		return 0
	}
	return 1
}
