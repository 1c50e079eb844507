package report

import (
	"context"
	"fmt"
	"regexp"

	"podenv.dev/hack/internal/run"
)

func helpOf(ctx context.Context, binary string) (string, error) {
	return run.Command(ctx, binary, "--help").Output()
}

// inHelp is what a component's --help says of the gate; empty if it is not listed.
func inHelp(help, name string) string {
	m := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `=true\|false \(([^)]*)\)`).FindStringSubmatch(help)
	if m == nil {
		return ""
	}
	return m[1]
}

// line is what a component's --help says of the gate: nothing of one that is GA.
func (g Gate) line() string {
	if g.Stage == "" {
		return ""
	}
	return fmt.Sprintf("%s - default=%t", g.Stage, g.Default)
}
