package expand

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"podenv.dev/hack/internal/jsonout"
)

// WriteJSON writes pods as an array.
func WriteJSON(w io.Writer, pods []Pod) error {
	return jsonout.Write(w, pods)
}

// marks stand before a finding, by its type.
var marks = map[string]string{Unexpanded: "!", Fails: "!", Unknown: "?", Unset: "-", Shadows: "~"}

// WriteTable writes pods for a person: a paragraph for each container, and each
// finding on a line of its own below what it is about.
func WriteTable(w io.Writer, pods []Pod) error {
	var t strings.Builder
	for _, pod := range pods {
		writePresets(&t, pod)
		for _, c := range pod.Containers {
			fmt.Fprintf(&t, "%s %s/%s, %s %s\n", pod.Kind, pod.Namespace, pod.Name, c.Type, c.Name)
			writeEnv(&t, c.Env)
			writeFindings(&t, "  ", c.Findings)
			writeTexts(&t, "command", c.Command)
			writeTexts(&t, "args", c.Args)
			t.WriteString("\n")
		}
	}
	fmt.Fprintf(&t, "unexpanded: %d, unknown: %d, cannot start: %d\n", Count(pods, Unexpanded), Count(pods, Unknown), Count(pods, Fails))
	_, err := io.WriteString(w, t.String())
	return err
}

func writePresets(t *strings.Builder, pod Pod) {
	if len(pod.Injected)+len(pod.Conflicts) == 0 {
		return
	}
	fmt.Fprintf(t, "%s %s/%s, presets\n", pod.Kind, pod.Namespace, pod.Name)
	for _, p := range pod.Injected {
		fmt.Fprintf(t, "  %s is injected\n", p.Preset)
	}
	for _, c := range pod.Conflicts {
		fmt.Fprintf(t, "  ! %s is not injected: %s\n", c.Preset, onOneLine(c.Message))
	}
	t.WriteString("\n")
}

func writeEnv(t *strings.Builder, env []Variable) {
	if len(env) == 0 {
		return
	}
	t.WriteString("  env\n")
	width := 0
	for _, v := range env {
		width = max(width, len(v.Name))
	}
	for _, v := range env {
		source := ""
		if v.Source != ofManifest {
			source = "  (" + v.Source + ")"
		}
		fmt.Fprintf(t, "    %-*s  %s%s\n", width, v.Name, onOneLine(v.Value), source)
		writeFindings(t, "      ", v.Findings)
	}
}

func writeTexts(t *strings.Builder, title string, texts []Text) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(t, "  %s\n", title)
	for _, text := range texts {
		fmt.Fprintf(t, "    %s\n", onOneLine(text.Value))
		writeFindings(t, "      ", text.Findings)
	}
}

func writeFindings(t *strings.Builder, indent string, findings []Finding) {
	for _, f := range findings {
		fmt.Fprintf(t, "%s%s %s\n", indent, marks[f.Type], onOneLine(f.Text))
	}
}

// onOneLine quotes what would not be seen as it is.
func onOneLine(s string) string {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if s == "" || s != strings.TrimSpace(s) || strings.IndexFunc(s, hidden) >= 0 {
		return strconv.Quote(s)
	}
	return s
}
