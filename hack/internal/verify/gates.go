package verify

import (
	"context"
	"fmt"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Gates checks that the binaries of minor know the gates of featuregates/, at the
// stage and with the default that stand there. binaries gives paths by component.
func Gates(minor string, binaries func() map[string]string) Check {
	return Check{Name: "feature gates", Group: "source", Run: func(ctx context.Context, _ *progress.Step) ([]junit.Case, error) {
		states, err := featuregates.In(minor)
		if err != nil {
			return nil, err
		}
		var cases []junit.Case
		for _, state := range states {
			for _, component := range state.Components {
				c := junit.Case{Name: fmt.Sprintf("%s of %s", state.Name, component), ClassName: "gates"}
				if err := gateIn(ctx, binaries()[component], state); err != nil {
					c.Failure = &junit.Message{Message: err.Error()}
				}
				cases = append(cases, c)
			}
		}
		return cases, nil
	}}
}

// gateIn compares state with what a component's --help says of the gate.
func gateIn(ctx context.Context, binary string, state featuregates.State) error {
	help, err := run.Command(ctx, binary, "--help").Output()
	if err != nil {
		return err
	}
	const compatibilityVersion = false // the releases served are older than that column
	want := state.Spec.HelpString(state.Name, compatibilityVersion)
	if want == "" {
		want = string(state.Name) + "=true|false" // a GA gate is not listed
		if strings.Contains(help, want) {
			return fmt.Errorf("%s lists %s, which featuregates/ calls GA", binary, state.Name)
		}
		return nil
	}
	if !strings.Contains(help, want) {
		return fmt.Errorf("%s --help does not have %q: make featuregates/ and the patches agree", binary, want)
	}
	return nil
}
