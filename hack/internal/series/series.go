// Package series reads which release each series of patches stands on: of Kubernetes, or of
// Tekton Pipelines.
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

// The modules of a release. The staging modules of Kubernetes are modules of their own.
const (
	kubernetes = "k8s.io/kubernetes"
	tekton     = "github.com/tektoncd/pipeline"
)

// tektonPrefix starts the name of a series of Tekton. Its folder is patches/tekton/<minor>.
const tektonPrefix = "tekton-"

// ErrUnknown is returned by Load for a series that patches/ does not have.
var ErrUnknown = errors.New("unknown series")

// Series is the patches of one minor, and the release they stand on.
type Series struct {
	Name    string // the minor: "v1.33", or "tekton-v1.10" of Tekton
	Release string // the tag: "v1.33.13"
	Dir     string // absolute path of patches/<minor> or patches/tekton/<minor>
}

// IsTekton reports whether the series called name patches Tekton Pipelines, and not Kubernetes.
func IsTekton(name string) bool { return strings.HasPrefix(name, tektonPrefix) }

// Minor is the minor that the series called name is about: "v1.10" of "tekton-v1.10".
func Minor(name string) string { return strings.TrimPrefix(name, tektonPrefix) }

// Folder is where the series called name stands, from the root of the repository.
func Folder(name string) string {
	if IsTekton(name) {
		return path.Join("patches", "tekton", Minor(name))
	}
	return path.Join("patches", name)
}

// IsTekton reports whether the series patches Tekton Pipelines, and not Kubernetes.
func (s Series) IsTekton() bool { return IsTekton(s.Name) }

// Module is the module that the release is, without staging modules.
func (s Series) Module() string {
	if s.IsTekton() {
		return tekton
	}
	return kubernetes
}

// Project is the name of what the release is one of.
func (s Series) Project() string {
	if s.IsTekton() {
		return "Tekton Pipelines"
	}
	return "Kubernetes"
}

// Load returns the series called name, which is a minor such as "v1.33" or "tekton-v1.10".
// ErrUnknown is in the chain of the error for a name that patches/ does not have.
func Load(l layout.Layout, name string) (Series, error) {
	dir := filepath.Join(l.Root, filepath.FromSlash(Folder(name)))
	s := Series{Name: name, Dir: dir}
	mod, err := s.GoMod()
	if errors.Is(err, os.ErrNotExist) || Minor(name) != filepath.Base(dir) {
		known, listErr := All(l)
		if listErr != nil {
			return Series{}, listErr
		}
		return Series{}, fmt.Errorf("%w %q: choose one of %s with --series", ErrUnknown, name, strings.Join(known, ", "))
	}
	if err != nil {
		return Series{}, fmt.Errorf("reading the release of series %s: %w", name, err)
	}
	for _, req := range mod.Require {
		if req.Mod.Path == s.Module() {
			if semver.MajorMinor(req.Mod.Version) != Minor(name) {
				return Series{}, fmt.Errorf("%s/go.mod requires %s, which is not of minor %s", dir, req.Mod, Minor(name))
			}
			s.Release = req.Mod.Version
			return s, nil
		}
	}
	return Series{}, fmt.Errorf("%s/go.mod does not require %s: add the release that the series stands on", dir, s.Module())
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

// incompleteFile, in the folder of a series that is being made, says what the series lacks.
const incompleteFile = "incomplete"

// Incomplete says what the series lacks. It is empty for a series that is whole.
func (s Series) Incomplete() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, incompleteFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}

// Names lists the series of Kubernetes that patches/ has, oldest first, but for those that
// are incomplete.
func Names(l layout.Layout) ([]string, error) {
	all, err := names(l, "")
	return slices.DeleteFunc(all, func(name string) bool {
		_, err := os.Stat(filepath.Join(l.Patches(name), incompleteFile))
		return err == nil
	}), err
}

// All lists the series that patches/ has: those of Kubernetes, oldest first, then Tekton's.
func All(l layout.Layout) ([]string, error) {
	ofKubernetes, err := names(l, "")
	if err != nil {
		return nil, err
	}
	ofTekton, err := names(l, tektonPrefix)
	return append(ofKubernetes, ofTekton...), err
}

// Siblings lists the series that share new files with s: those of the same project.
func (s Series) Siblings(l layout.Layout) ([]string, error) {
	if s.IsTekton() {
		return names(l, tektonPrefix)
	}
	return names(l, "")
}

// names lists the series whose names start with prefix and a minor.
func names(l layout.Layout, prefix string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(l.Root, filepath.FromSlash(Folder(prefix+"v*")), "go.mod"))
	if err != nil {
		return nil, err
	}
	found := make([]string, len(files))
	for i, file := range files {
		found[i] = prefix + filepath.Base(filepath.Dir(file))
	}
	slices.SortFunc(found, func(a, b string) int { return semver.Compare(Minor(a), Minor(b)) })
	return found, nil
}

// SupportedSkew is how many minors a kubelet may be older than the API server, see
// https://kubernetes.io/releases/version-skew-policy/#kubelet.
const SupportedSkew = 3

// Older lists the minors before the series' that a kubelet may have beside its API
// server, as far as patches/ pins them, oldest first: the newest of them, at most n. Their
// patches may be incomplete: a stock kubelet needs none.
func (s Series) Older(l layout.Layout, n int) ([]string, error) {
	all, err := names(l, "")
	if err != nil {
		return nil, err
	}
	older := slices.DeleteFunc(all, func(name string) bool {
		return semver.Compare(name, s.Name) >= 0 || minor(s.Name)-minor(name) > SupportedSkew
	})
	return older[max(0, len(older)-n):], nil
}

// Newer are the minors that the series' is upgraded to one after the other, as far as patches/
// has each. Their patches may be incomplete.
func (s Series) Newer(l layout.Layout) ([]string, error) {
	all, err := names(l, "")
	if err != nil {
		return nil, err
	}
	var newer []string
	for next := minor(s.Name) + 1; ; next++ {
		i := slices.IndexFunc(all, func(name string) bool { return minor(name) == next })
		if i < 0 {
			return newer, nil
		}
		newer = append(newer, all[i])
	}
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

// ImportPath is the import path of the package in folder, a path with forward slashes from the
// root of the tree of s.
func (s Series) ImportPath(folder string) string {
	if s.IsTekton() {
		return path.Join(tekton, folder)
	}
	return ImportPath(folder)
}

// ImportPath is the import path of the package of Kubernetes in folder, a path with forward slashes from
// the root of a release's tree: staging modules are modules of their own.
func ImportPath(folder string) string {
	if staged, ok := strings.CutPrefix(folder, "staging/src/"); ok {
		return staged
	}
	return path.Join(kubernetes, folder)
}
