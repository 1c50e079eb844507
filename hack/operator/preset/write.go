package preset

import (
	"fmt"
	"io"
	"strings"

	"podenv.dev/hack/internal/jsonout"
)

// InConflict counts the presets that pods do not get.
func InConflict(pods []Pod) int {
	count := 0
	for _, pod := range pods {
		count += len(pod.Conflicts)
	}
	return count
}

// WriteText writes pods for a person.
func WriteText(w io.Writer, pods []Pod) error {
	var b strings.Builder
	for _, pod := range pods {
		fmt.Fprintf(&b, "%s %s/%s\n", pod.Kind, pod.Namespace, pod.Name)
		switch {
		case pod.Exempt:
			b.WriteString("  presets leave it alone: it is excluded, or the mirror of a static pod\n")
		case len(pod.Injected)+len(pod.Conflicts) == 0:
			b.WriteString("  no preset matches its labels\n")
		}
		for _, p := range pod.Injected {
			fmt.Fprintf(&b, "  %s is injected\n", p.Preset)
			line := func(what string, names []string) {
				if len(names) > 0 {
					fmt.Fprintf(&b, "    %-8s %s\n", what, strings.Join(names, ", "))
				}
			}
			line("env", p.Env)
			line("envFrom", p.EnvFrom)
			line("mounts", p.Mounts)
			line("volumes", p.Volumes)
		}
		for _, c := range pod.Conflicts {
			fmt.Fprintf(&b, "  %s is not injected\n    %s\n", c.Preset, c.Message)
		}
	}
	fmt.Fprintf(&b, "in conflict: %d\n", InConflict(pods))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes pods for a script.
func WriteJSON(w io.Writer, pods []Pod) error { return jsonout.Write(w, pods) }
