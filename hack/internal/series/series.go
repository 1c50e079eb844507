// Package series reads which Kubernetes release each series of patches stands on.
package series

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"podenv.dev/hack/internal/layout"
)

// kubernetes is the module of a release.
const kubernetes = "k8s.io/kubernetes"

// ErrUnknown is returned by Load for a series that patches/ does not have.
var ErrUnknown = errors.New("unknown series")

// Series is the patches of one Kubernetes minor, and the release they stand on.
type Series struct {
	Name    string // the minor: "v1.33"
	Release string // the tag: "v1.33.13"
	Dir     string // absolute path of patches/<minor>
}

// Load returns the series called name, which is a minor such as "v1.33".
// ErrUnknown is in the chain of the error for a name that patches/ does not have.
func Load(l layout.Layout, name string) (Series, error) {
	dir := l.Patches(name)
	mod, err := Series{Dir: dir}.GoMod()
	if errors.Is(err, os.ErrNotExist) || name != filepath.Base(dir) {
		known, listErr := Names(l)
		if listErr != nil {
			return Series{}, listErr
		}
		return Series{}, fmt.Errorf("%w %q: choose one of %s with --series", ErrUnknown, name, strings.Join(known, ", "))
	}
	if err != nil {
		return Series{}, fmt.Errorf("reading the release of series %s: %w", name, err)
	}
	for _, req := range mod.Require {
		if req.Mod.Path == kubernetes {
			if semver.MajorMinor(req.Mod.Version) != name {
				return Series{}, fmt.Errorf("%s/go.mod requires %s %s, which is not of minor %s", dir, kubernetes, req.Mod.Version, name)
			}
			return Series{Name: name, Release: req.Mod.Version, Dir: dir}, nil
		}
	}
	return Series{}, fmt.Errorf("%s/go.mod does not require %s: add the release that the series stands on", dir, kubernetes)
}

// GoMod reads the series' go.mod, which pins the modules of the release.
func (s Series) GoMod() (*modfile.File, error) {
	path := filepath.Join(s.Dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(path, data, nil)
}

// Replaced lists the modules of the release that are there at another version, as in
// "k8s.io/cri-client v0.33.13": those that the series' go.mod replaces.
func (s Series) Replaced() ([]string, error) {
	mod, err := s.GoMod()
	if err != nil {
		return nil, err
	}
	var replaced []string
	for _, r := range mod.Replace {
		replaced = append(replaced, r.New.Path+" "+r.New.Version)
	}
	return replaced, nil
}

// Names lists the series that patches/ has, oldest first.
func Names(l layout.Layout) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.Patches("v*"), "go.mod"))
	if err != nil {
		return nil, err
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = filepath.Base(filepath.Dir(file))
	}
	slices.SortFunc(names, semver.Compare)
	return names, nil
}

// SupportedSkew is how many minors a kubelet may be older than the API server, see
// https://kubernetes.io/releases/version-skew-policy/#kubelet.
const SupportedSkew = 3

// Older lists the minors before the series' that a kubelet may have beside its API
// server, as far as patches/ pins them, oldest first: the newest of them, at most n.
func (s Series) Older(l layout.Layout, n int) ([]string, error) {
	names, err := Names(l)
	if err != nil {
		return nil, err
	}
	older := slices.DeleteFunc(names, func(name string) bool {
		return semver.Compare(name, s.Name) >= 0 || minor(s.Name)-minor(name) > SupportedSkew
	})
	return older[max(0, len(older)-n):], nil
}

// minor is the number of a minor: 33 of v1.33.
func minor(name string) int {
	_, number, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0 // Load takes no such name
	}
	return n
}

// Staging is the version of the release's staging modules: "v0.33.13" for "v1.33.13".
func (s Series) Staging() string { return "v0" + strings.TrimPrefix(s.Release, "v1") }

// Patches lists the series' patch files in the order in which they apply.
func (s Series) Patches() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(s.Dir, "*.patch"))
	slices.Sort(files)
	return files, err
}

// ImportPath is the import path of the package in folder, a path with forward slashes from
// the root of a release's tree: staging modules are modules of their own.
func ImportPath(folder string) string {
	if staged, ok := strings.CutPrefix(folder, "staging/src/"); ok {
		return staged
	}
	return path.Join(kubernetes, folder)
}
