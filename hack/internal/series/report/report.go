package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

// Report is what there is to say of one series.
type Report struct {
	Series  string `json:"series"`  // "v1.33"
	Release string `json:"release"` // "v1.33.13"
	// Replaced are the release's modules that are there at another version, because the
	// module proxy lacks theirs; see the replace lines of patches/<series>/go.mod.
	Replaced []string `json:"replaced,omitempty"`
	// Patches is their number, PatchLines that of their lines, messages and context included.
	Patches    int `json:"patches"`
	PatchLines int `json:"patchLines"`
	// Touched is what the patches change in existing files, NewFiles what they bring.
	Touched  Touched  `json:"touched"`
	NewFiles NewFiles `json:"newFiles"`
	// Built reports whether the series' binaries are there to be asked for gates.
	Built bool `json:"built"`
	// Gates are those of featuregates/ for the minor, sorted by name.
	Gates []Gate `json:"gates"`
}

// Gate is a feature gate, as featuregates/ says for the minor.
type Gate struct {
	Name string `json:"name"`
	// Stage is "ALPHA", "BETA" or empty for GA.
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	// Wrong says where the binaries and featuregates/ disagree; empty if they do not.
	Wrong string `json:"wrong,omitempty"`
}

// Of reports on the series s. The gates of featuregates/ are confirmed by the --help of the
// built components that act on them; those of a series that is not built are not.
func Of(ctx context.Context, l layout.Layout, s series.Series) (Report, error) {
	r := Report{Series: s.Name, Release: s.Release, Gates: []Gate{}}
	if err := r.countPatches(s); err != nil {
		return Report{}, err
	}
	var err error
	if r.Replaced, err = s.Replaced(); err != nil {
		return Report{}, err
	}
	if s.IsTekton() {
		return r, nil // which has no feature gates of Kubernetes
	}
	want, err := featuregates.In(s.Name)
	if err != nil {
		return Report{}, err
	}
	binaries := filepath.Join(l.Build(s.Name), "bin")
	if r.Built, err = isBuilt(binaries, want); err != nil {
		return Report{}, err
	}
	for _, state := range want {
		r.Gates = append(r.Gates, Gate{Name: string(state.Name), Stage: string(state.Spec.PreRelease), Default: state.Spec.Default})
	}
	if r.Built {
		err = r.ask(ctx, binaries, want)
	}
	return r, err
}

// isBuilt reports whether the folder binaries has the components that are asked.
func isBuilt(binaries string, states []featuregates.State) (bool, error) {
	for _, component := range components(states) {
		_, err := os.Stat(filepath.Join(binaries, component))
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// components are those that act on one of the gates.
func components(states []featuregates.State) []string {
	var names []string
	for _, state := range states {
		names = append(names, state.Components...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ask compares what the binaries say of the gates with what featuregates/ says.
func (r *Report) ask(ctx context.Context, binaries string, want []featuregates.State) error {
	help := map[string]string{}
	for _, component := range components(want) {
		var err error
		if help[component], err = helpOf(ctx, filepath.Join(binaries, component)); err != nil {
			return fmt.Errorf("asking %s of series %s for its feature gates: %w", component, r.Series, err)
		}
	}
	for i, state := range want {
		g := &r.Gates[i]
		for _, component := range state.Components {
			line := inHelp(help[component], g.Name)
			switch {
			case line == g.line() || g.Wrong != "":
			case line == "":
				g.Wrong = fmt.Sprintf("%s --help does not list it: if the build is older than the patches, podenv build --series %s", component, r.Series)
			default:
				g.Wrong = fmt.Sprintf("%s --help says %s, featuregates/ %s", component, line, g.line())
			}
		}
	}
	return nil
}

// Disagree reports whether any gate is another one than featuregates/ says. It decides the
// exit status of podenv series.
func Disagree(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool {
		return slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Wrong != "" })
	})
}
