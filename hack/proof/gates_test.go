package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/run"
)

// featureGates checks that the binaries have the gates of featuregates/, with the same stage and
// default.
func featureGates(c *check) error {
	states, err := featuregates.In(steps.Series.Name)
	if err != nil {
		return err
	}
	for _, state := range states {
		for _, component := range state.Components {
			c.part(fmt.Sprintf("%s of %s", state.Name, component), func() error {
				return gateIn(c.ctx, built.value.Build.Binaries[component], state)
			})
		}
	}
	return nil
}

// gateIn compares state with the gate in the output of a component's --help.
func gateIn(ctx context.Context, binary string, state featuregates.State) error {
	help, err := run.Command(ctx, binary, "--help").Output()
	if err != nil {
		return err
	}
	const compatibilityVersion = false // the releases served are older than that column
	want := state.Spec.HelpString(state.Name, compatibilityVersion)
	if want == "" { // a GA gate is not listed
		if strings.Contains(help, string(state.Name)+"=true|false") {
			return fmt.Errorf("%s lists %s, which featuregates/ calls GA", binary, state.Name)
		}
		return nil
	}
	if !strings.Contains(help, want) {
		return fmt.Errorf("%s --help does not have %q: make featuregates/ and the patches agree", binary, want)
	}
	return nil
}

func TestGateInComparesABinaryWithTheTable(t *testing.T) {
	states, err := featuregates.In("v1.33")
	if err != nil {
		t.Fatal(err)
	}
	state := states[0]
	listed := state.Spec.HelpString(state.Name, false)
	for name, test := range map[string]struct {
		help string
		ok   bool
	}{
		"agrees":          {"  " + listed, true},
		"no gate at all":  {"", false},
		"another default": {strings.NewReplacer("=false)", "=true)", "=true)", "=false)").Replace(listed), false},
	} {
		t.Run(name, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "component")
			if err := os.WriteFile(binary, fmt.Appendf(nil, "#!/bin/sh\ncat <<'END'\n%s\nEND\n", test.help), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := gateIn(t.Context(), binary, state); (err == nil) != test.ok {
				t.Errorf("%s: error %v", test.help, err)
			}
		})
	}
}
