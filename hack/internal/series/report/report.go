// Package report reports what each series of patches costs and provides: the number of
// patches, the lines that they change in existing files, and the feature gates of the built
// binaries.
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
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/series"
)

// Report describes one series.
type Report struct {
	Series  string `json:"series"`  // "v1.33"
	Release string `json:"release"` // "v1.33.13"
	// Replaced are the release's modules that the series uses at another version, because the
	// module proxy lacks theirs; see the replace lines of patches/<series>/go.mod.
	Replaced []string `json:"replaced,omitempty"`
	// Patches is the number of patches, PatchLines that of their lines, including messages and
	// context.
	Patches    int `json:"patches"`
	PatchLines int `json:"patchLines"`
	// Touched counts what the patches change in existing files, NewFiles the files they add.
	Touched  Touched  `json:"touched"`
	NewFiles NewFiles `json:"newFiles"`
	// Built reports whether the binaries that report the gates are built.
	Built bool `json:"built"`
	// Gates are the gates in featuregates/ for the minor, sorted by name.
	Gates []Gate `json:"gates"`
}

// Gate is a feature gate as the series' binaries report it.
type Gate struct {
	Name string `json:"name"`
	// Stage is "ALPHA", "BETA" or empty for GA, as in kubernetes_feature_enabled.
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	// Wrong says how the binaries and featuregates/ differ; empty if they agree.
	Wrong string `json:"wrong,omitempty"`
}

// Of reports on the series s. It runs one of the built components for a moment. If the series
// is not built, the gates are those of featuregates/, unconfirmed.
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
		return r, nil // no feature gates
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
		err = r.readGates(ctx, binaries, want)
	}
	return r, err
}

// isBuilt reports whether the folder binaries has the components that readGates runs.
func isBuilt(binaries string, states []featuregates.State) (bool, error) {
	for _, component := range append(components(states), metricsComponent) {
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

// components are the components that use one of the gates.
func components(states []featuregates.State) []string {
	var names []string
	for _, state := range states {
		names = append(names, state.Components...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readGates replaces the gates of featuregates/ by those that the binaries report.
func (r *Report) readGates(ctx context.Context, binaries string, want []featuregates.State) error {
	served, err := metricsGates(ctx, filepath.Join(binaries, metricsComponent))
	if err != nil {
		return fmt.Errorf("asking %s of series %s for its feature gates: %w", metricsComponent, r.Series, err)
	}
	help := map[string]string{}
	for _, component := range components(want) {
		if help[component], err = run.Command(ctx, filepath.Join(binaries, component), "--help").Output(); err != nil {
			return fmt.Errorf("asking %s of series %s for its feature gates: %w", component, r.Series, err)
		}
	}
	for i, state := range want {
		expected := r.Gates[i]
		found, ok := served[expected.Name]
		if !ok {
			r.Gates[i].Wrong = fmt.Sprintf("%s does not know it: if the build is older than the patches, podenv build --series %s", metricsComponent, r.Series)
			continue
		}
		r.Gates[i].Stage, r.Gates[i].Default = found.Stage, found.Enabled
		if found.Stage != expected.Stage || found.Enabled != expected.Default {
			r.Gates[i].Wrong = fmt.Sprintf("featuregates/ says %s, default %t", stage(expected.Stage), expected.Default)
		}
		for _, component := range state.Components {
			if line := gateInHelp(help[component], expected.Name); r.Gates[i].Wrong == "" && !matchesHelp(line, found) {
				r.Gates[i].Wrong = fmt.Sprintf("%s --help says %s", component, line)
			}
		}
	}
	return nil
}

// Disagree reports whether any gate differs from featuregates/. It decides the exit status of
// podenv series.
func Disagree(reports []Report) bool {
	return slices.ContainsFunc(reports, func(r Report) bool {
		return slices.ContainsFunc(r.Gates, func(g Gate) bool { return g.Wrong != "" })
	})
}
