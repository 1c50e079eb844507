package series

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// FixesFolder is the folder of the patches of upstream's own code for the minor, relative to the
// root of the repository. They apply to the release of its series, each alone or all in order.
func FixesFolder(minor string) string { return "patches/upstream/" + minor }

// MaxFixLines is how many lines a fix may add and remove, tests included.
const MaxFixLines = 150

// FindFixes returns the list, for Series.Fixes, of the patches that paths name: files, or folders
// of them.
func FindFixes(paths []string) (list string, err error) {
	var fixes []string
	for _, path := range paths {
		if path, err = filepath.Abs(path); err != nil {
			return "", err
		}
		found := []string{path}
		if stat, err := os.Stat(path); err != nil {
			return "", err
		} else if stat.IsDir() {
			if found, err = filepath.Glob(filepath.Join(path, "*.patch")); err != nil {
				return "", err
			}
		}
		if len(found) == 0 {
			return "", fmt.Errorf("%s has no *.patch files", path)
		}
		fixes = append(fixes, found...)
	}
	return strings.Join(fixes, string(filepath.ListSeparator)), nil
}
