// Package series reads the series of patches: for each, the release of Kubernetes or Tekton
// Pipelines that it is based on.
package series

import (
	"errors"
	"fmt"
	"io/fs"
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

// The main modules of the releases.
const (
	kubernetes = "k8s.io/kubernetes"
	tekton     = "github.com/tektoncd/pipeline"
)

// tektonPrefix is the prefix of the names of Tekton series, which are in patches/tekton/<minor>.
const tektonPrefix = "tekton-"

// ErrUnknown is returned by Load for a series that is not in patches/.
var ErrUnknown = errors.New("unknown series")

// Series is the patches of one minor, and the release that they apply to.
type Series struct {
	Name    string // the minor: "v1.33", or "tekton-v1.10" for Tekton
	Release string // the tag: "v1.33.13"
	Dir     string // absolute path of patches/<minor> or patches/tekton/<minor>
	Pins    string // folder of the go.mod and go.sum that pin the release: Dir, unless At chose another

	Mod    *modfile.File // the go.mod in Pins
	Header Boilerplate   // the license header of new files, in the form that the release requires
	// Fixes are the patches that a stock tree gets: see FindFixes. If there are any, they are the
	// patches of the series.
	Fixes []string
}

// IsTekton reports whether the series called name patches Tekton Pipelines, not Kubernetes.
func IsTekton(name string) bool { return strings.HasPrefix(name, tektonPrefix) }

// Minor is the minor of the series called name: "v1.10" for "tekton-v1.10".
func Minor(name string) string { return strings.TrimPrefix(name, tektonPrefix) }

// Folder is the folder of the series called name, relative to the root of the repository.
func Folder(name string) string {
	if IsTekton(name) {
		return path.Join("patches", "tekton", Minor(name))
	}
	return path.Join("patches", name)
}

// IsTekton reports whether the series patches Tekton Pipelines, not Kubernetes.
func (s Series) IsTekton() bool { return IsTekton(s.Name) }

// Module is the main module of the release.
func (s Series) Module() string {
	if s.IsTekton() {
		return tekton
	}
	return kubernetes
}

// Project is the name of the project that the series patches.
func (s Series) Project() string {
	if s.IsTekton() {
		return "Tekton Pipelines"
	}
	return "Kubernetes"
}

// Load returns the series called name, such as "v1.33" or "tekton-v1.10". For a series that
// is not in patches/ the error wraps ErrUnknown.
func Load(l layout.Layout, name string) (Series, error) {
	dir := filepath.Join(l.Root, filepath.FromSlash(Folder(name)))
	s, err := Series{Name: name, Dir: dir}.At(dir)
	if errors.Is(err, os.ErrNotExist) || Minor(name) != filepath.Base(dir) {
		return Series{}, fmt.Errorf("%w %q: choose one of %s with --series", ErrUnknown, name, strings.Join(All(l), ", "))
	}
	return s, err
}

// At returns the series on the release that the go.mod in the folder pins requires.
func (s Series) At(pins string) (Series, error) {
	path := filepath.Join(pins, "go.mod")
	data, err := os.ReadFile(path)
	if err == nil {
		s.Mod, err = modfile.Parse(path, data, nil)
	}
	if err != nil {
		return Series{}, fmt.Errorf("reading the release of series %s: %w", s.Name, err)
	}
	s.Pins = pins
	for _, req := range s.Mod.Require {
		if req.Mod.Path == s.Module() {
			if semver.MajorMinor(req.Mod.Version) != Minor(s.Name) {
				return Series{}, fmt.Errorf("%s/go.mod requires %s, which is not of minor %s", pins, req.Mod, Minor(s.Name))
			}
			s.Release = req.Mod.Version
			s.Header, err = s.readBoilerplate()
			return s, err
		}
	}
	return Series{}, fmt.Errorf("%s/go.mod does not require %s: add the release that the series is based on", pins, s.Module())
}

// Replaced lists the modules that the series' go.mod replaces by another version than the
// release's, as in "k8s.io/cri-client v0.33.13".
func (s Series) Replaced() []string {
	var replaced []string
	for _, r := range s.Mod.Replace {
		replaced = append(replaced, r.New.Path+" "+r.New.Version)
	}
	return replaced
}

// Names lists the series of Kubernetes in patches/, oldest first.
func Names(l layout.Layout) []string { return names(l, "") }

// All lists all series in patches/: those of Kubernetes, oldest first, then Tekton's.
func All(l layout.Layout) []string { return append(Names(l), names(l, tektonPrefix)...) }

// LoadAll loads all series in patches/, in the order of All.
func LoadAll(l layout.Layout) ([]Series, error) {
	var all []Series
	for _, name := range All(l) {
		s, err := Load(l, name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// names lists the series of one project, oldest first: prefix is tektonPrefix, or empty for
// Kubernetes.
func names(l layout.Layout, prefix string) []string {
	files, _ := fs.Glob(os.DirFS(l.Root), Folder(prefix+"v*")+"/go.mod") // only a wrong pattern is an error
	for i, file := range files {
		files[i] = prefix + path.Base(path.Dir(file))
	}
	slices.SortFunc(files, func(a, b string) int { return semver.Compare(Minor(a), Minor(b)) })
	return files
}

// SupportedSkew is the number of minors that a kubelet may be older than kube-apiserver, see
// https://kubernetes.io/releases/version-skew-policy/#kubelet.
const SupportedSkew = 3

// Older lists the series of older minors whose kubelets the version skew policy supports with
// the kube-apiserver of s, oldest first, and at most the newest n.
func (s Series) Older(l layout.Layout, n int) []string {
	older := slices.DeleteFunc(Names(l), func(name string) bool {
		return semver.Compare(name, s.Name) >= 0 || minor(s.Name)-minor(name) > SupportedSkew
	})
	return older[max(0, len(older)-n):]
}

// Newer lists the series of the minors that s is upgraded to one after the other, up to the
// first minor that is not in patches/.
func (s Series) Newer(l layout.Layout) []string {
	var newer []string
	for _, name := range Names(l) {
		if minor(name) == minor(s.Name)+len(newer)+1 {
			newer = append(newer, name)
		}
	}
	return newer
}

// minor is the number of a minor: 33 for v1.33.
func minor(name string) int {
	_, number, _ := strings.Cut(name, ".")
	n, _ := strconv.Atoi(number) // Load refuses a name without one
	return n
}

// Staging is the version of the release's staging modules: "v0.33.13" for "v1.33.13".
func (s Series) Staging() string { return "v0" + strings.TrimPrefix(s.Release, "v1") }

// Patches lists the series' patch files in the order of application.
func (s Series) Patches() []string {
	if len(s.Fixes) > 0 {
		return s.Fixes
	}
	files, _ := fs.Glob(os.DirFS(s.Dir), "*.patch") // only a wrong pattern is an error
	for i, file := range files {
		files[i] = filepath.Join(s.Dir, file)
	}
	return files
}

// ImportPath is the import path of the package in folder, a slash-separated path relative to
// the root of the tree of s.
func (s Series) ImportPath(folder string) string {
	if s.IsTekton() {
		return path.Join(tekton, folder)
	}
	return ImportPath(folder)
}

// ImportPath is the import path of the Kubernetes package in folder, a slash-separated path
// relative to the root of a tree. Staging modules are separate modules.
func ImportPath(folder string) string {
	if staged, ok := strings.CutPrefix(folder, "staging/src/"); ok {
		return staged
	}
	return path.Join(kubernetes, folder)
}
