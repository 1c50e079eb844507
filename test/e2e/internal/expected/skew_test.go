package expected

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutcomesOfTheSkewMatrix(t *testing.T) {
	off, on := Runs{Patched, "v1.33", false}, Runs{Patched, "v1.33", true}
	for name, test := range map[string]struct {
		Cell              Cell
		envFile, specials string
	}{
		"all on":                         {Cell{on, on}, "value / value", "both / both"},
		"only the API server on":         {Cell{on, off}, "not set / not set", "name only / name only"},
		"only the kubelet on":            {Cell{off, on}, "refused / value", "refused / both"},
		"all off":                        {Cell{off, off}, "refused / not set", "refused / name only"},
		"an older kubelet":               {Cell{on, Runs{Stock, "v1.31", false}}, "empty / empty", "both / both"},
		"a stock API server":             {Cell{Runs{Stock, "v1.33", false}, on}, "refused / empty", "both / both"},
		"one of a release with it off":   {Cell{Runs{Stock, "v1.31", false}, on}, "refused / empty", "refused / both"},
		"a release that has neither one": {Cell{Runs{Stock, "v1.29", false}, Runs{Stock, "v1.29", false}}, "refused / empty", "refused / name only"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.Cell.wantEnvFile().String(); got != test.envFile {
				t.Errorf("a variable from an env file: %s, want %s", got, test.envFile)
			}
			if got := test.Cell.wantRelaxed().String(); got != test.specials {
				t.Errorf("special names: %s, want %s", got, test.specials)
			}
		})
	}
}

// TestTheDocsShowTheSkewMatrix holds docs/upgrade-and-skew.md to what the specs expect of the default
// series, which the run compares with what it sees.
func TestTheDocsShowTheSkewMatrix(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "upgrade-and-skew.md"))
	if err != nil {
		t.Fatal(err)
	}
	apiServers, kubelets := Sides("v1.33", []string{"v1.30", "v1.31", "v1.32"})
	for _, f := range Features {
		want := Matrix(f.Gate, apiServers, kubelets, func(c Cell) string { return f.Want(c).String() })
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/upgrade-and-skew.md lacks what the specs expect:\n%s", want)
		}
	}
}
