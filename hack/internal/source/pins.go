package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"podenv.dev/hack/internal/series"
)

// readPins lists the modules that the series' go.mod requires.
func readPins(s series.Series) ([]module.Version, error) {
	path := filepath.Join(s.Dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(path, data, nil)
	if err != nil {
		return nil, err
	}
	var pins []module.Version
	for _, r := range f.Require {
		pins = append(pins, r.Mod)
		if r.Mod.Path != kubernetes && r.Mod.Version != s.Staging() {
			return nil, fmt.Errorf("%s requires %s, but the staging modules of %s are at %s: correct it", path, r.Mod, s.Release, s.Staging())
		}
	}
	return pins, nil
}

// readSums reads the checksums of module content from the series' go.sum.
func readSums(s series.Series) (map[module.Version]string, error) {
	data, err := os.ReadFile(filepath.Join(s.Dir, "go.sum"))
	if err != nil {
		return nil, err
	}
	sums := map[module.Version]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 {
			sums[module.Version{Path: f[0], Version: f[1]}] = f[2]
		}
	}
	return sums, nil
}

// copyPins copies go.mod and go.sum, because go adds to go.sum what it misses there.
func copyPins(s series.Series, scratch string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(scratch, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
