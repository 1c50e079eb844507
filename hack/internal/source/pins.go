package source

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"podenv.dev/hack/internal/series"
)

// readPins lists the modules that the series' go.mod requires. A staging module that cannot
// be had at the release's version may be replaced there by another version of itself.
func readPins(s series.Series) ([]module.Version, error) {
	f, err := readGoMod(s)
	if err != nil {
		return nil, err
	}
	path := f.Syntax.Name
	var pins []module.Version
	for _, r := range f.Require {
		if r.Mod.Path != kubernetes && r.Mod.Version != s.Staging() {
			return nil, fmt.Errorf("%s requires %s, but the staging modules of %s are at %s: correct it", path, r.Mod, s.Release, s.Staging())
		}
		pins = append(pins, r.Mod)
	}
	for _, r := range f.Replace {
		at := slices.Index(pins, r.Old)
		if at < 0 || r.Old.Path == kubernetes || r.New.Path != r.Old.Path {
			return nil, fmt.Errorf("%s replaces %s by %s: only a staging module can be replaced, at the version that is required and by another version of itself", path, r.Old, r.New)
		}
		pins[at] = r.New
	}
	return pins, nil
}

// readLanguage is the Go version that the series' go.mod, as the release's, says.
func readLanguage(s series.Series) (string, error) {
	f, err := readGoMod(s)
	if err != nil {
		return "", err
	}
	if f.Go == nil {
		return "", fmt.Errorf("%s has no go line: add that of the go.mod of %s", f.Syntax.Name, s.Release)
	}
	return f.Go.Version, nil
}

func readGoMod(s series.Series) (*modfile.File, error) {
	path := filepath.Join(s.Dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, data, nil)
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
