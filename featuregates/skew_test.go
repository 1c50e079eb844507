package featuregates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutcomesOfTheSkewMatrix(t *testing.T) {
	off, on := Runs{Patched, "v1.33", false}, Runs{Patched, "v1.33", true}
	off34, on34 := Runs{Patched, "v1.34", false}, Runs{Patched, "v1.34", true}
	for name, test := range map[string]struct {
		Cell              Cell
		envFile, specials string
		preset, expansion string
	}{
		"all on":                          {Cell{on, on}, "value / value", "both / both", "value / value", "event / event"},
		"only the API server on":          {Cell{on, off}, "not set / not set", "both / both", "value / value", "no event / no event"},
		"only the kubelet on":             {Cell{off, on}, "refused / value", "refused / both", "not set / value", "event / event"},
		"all off":                         {Cell{off, off}, "refused / not set", "refused / both", "not set / value", "no event / no event"},
		"all off, where the gate decides": {Cell{Runs{Patched, "v1.29", false}, Runs{Patched, "v1.29", false}}, "refused / not set", "refused / name only", "not set / value", "no event / no event"},
		"an older kubelet":                {Cell{on, Runs{Stock, "v1.31", false}}, "empty / empty", "both / both", "value / value", "no event / no event"},
		"a stock API server":              {Cell{Runs{Stock, "v1.33", false}, on}, "refused / empty", "both / both", "not set / value", "event / event"},
		"one of a release with it off":    {Cell{Runs{Stock, "v1.31", false}, on}, "refused / empty", "refused / both", "not set / value", "event / event"},
		"a kubelet of the minor before":   {Cell{on34, on}, "value / value", "both / both", "value / value", "event / event"},
		"all off that is not locked":      {Cell{off34, off34}, "refused / empty", "both / both", "not set / value", "no event / no event"},
		"a stock one that has the field":  {Cell{Runs{Stock, "v1.34", false}, on34}, "refused / value", "both / both", "not set / value", "event / event"},
		"a stock kubelet that has it":     {Cell{on34, Runs{Stock, "v1.34", false}}, "empty / empty", "both / both", "value / value", "no event / no event"},
		"a release that has neither one":  {Cell{Runs{Stock, "v1.29", false}, Runs{Stock, "v1.29", false}}, "refused / empty", "refused / name only", "not set / value", "no event / no event"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wantEnvFile(test.Cell).String(); got != test.envFile {
				t.Errorf("a variable from an env file: %s, want %s", got, test.envFile)
			}
			if got := wantRelaxed(test.Cell).String(); got != test.specials {
				t.Errorf("special names: %s, want %s", got, test.specials)
			}
			if got := wantPreset(test.Cell).String(); got != test.preset {
				t.Errorf("a preset: %s, want %s", got, test.preset)
			}
			if got := wantExpansion(test.Cell).String(); got != test.expansion {
				t.Errorf("a reference that cannot be expanded: %s, want %s", got, test.expansion)
			}
		})
	}
}

func TestGate(t *testing.T) {
	for _, test := range []struct {
		runs              Runs
		envFiles, relaxed GateState
	}{
		{Runs{Patched, "v1.33", false}, GateOff, GateOff},
		{Runs{Patched, "v1.33", true}, GateOn, GateOn},
		{Runs{Stock, "v1.33", false}, GateUnknown, GateOn},
		{Runs{Stock, "v1.29", false}, GateUnknown, GateUnknown},
		{Runs{Patched, "v1.34", false}, GateOff, GateOn}, // locked
		{Runs{Stock, "v1.34", false}, GateOff, GateOn},
	} {
		if got := test.runs.Gate(EnvFiles); got != test.envFiles {
			t.Errorf("%s, %s: %s is %s, want %s", test.runs.Minor, test.runs, EnvFiles, got, test.envFiles)
		}
		if got := test.runs.Gate(RelaxedEnvironmentVariableValidation); got != test.relaxed {
			t.Errorf("%s, %s: %s is %s, want %s", test.runs.Minor, test.runs, RelaxedEnvironmentVariableValidation, got, test.relaxed)
		}
	}
}

// TestTheDocsShowTheSkewMatrix holds docs/upgrade-and-skew.md to what the specs expect, which the
// run compares with what it sees.
func TestTheDocsShowTheSkewMatrix(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "upgrade-and-skew.md"))
	if err != nil {
		t.Fatal(err)
	}
	for minor, older := range map[string][]string{"v1.33": {"v1.30", "v1.31", "v1.32"}, "v1.34": {"v1.33"}} {
		apiServers, kubelets := Sides(minor, older)
		probed, err := Probed(minor)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range probed {
			want := Matrix(string(f.Name), apiServers, kubelets, func(c Cell) string { return f.Probe.Want(c).String() })
			if f.Upstream == nil && minor != "v1.33" {
				continue // the page says in words that it is as on v1.33
			}
			locked := f.Spec.LockToDefault // the page says in words that all cells are the same
			if locked && strings.Count(want, "both / both") != len(apiServers)*len(kubelets) || !locked && !strings.Contains(string(page), want) {
				t.Errorf("docs/upgrade-and-skew.md lacks what the specs expect:\n%s", want)
			}
		}
	}
}
