package build

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/jsonout"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// Components are the Kubernetes programs that Binaries compiles, each from cmd/<name> of the tree.
var Components = []string{
	"kubelet", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubeadm", "kubectl",
}

// ImageComponents are the Components that run as containers. Images packs them.
var ImageComponents = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"}

// Result is what was built from a tree.
type Result struct {
	// Dir is the build's folder; bin/ and images/ are in it.
	Dir string
	// Version is what the components print: v1.33.13+podenv.5, or v1.33.13 for stock, with the
	// suffix ".dirty" or "+dirty" for a tree with edits.
	Version string
	Arch    string // Go's name of the architecture
	Tree    *source.Tree
	// Binaries has the absolute path of each requested component.
	Binaries map[string]string
	// Images has the absolute path of each image's docker-archive, after a call of Images.
	Images map[string]string
}

// Binaries compiles components of the tree t as it is, edits included, for an architecture: in a
// folder of its own if it is not this machine's. It keeps binaries that are up to date, and does
// not run `go build` if nothing changed.
func Binaries(ctx context.Context, l layout.Layout, t *source.Tree, arch string, components []string, step *progress.Step) (*Result, error) {
	dir := l.Build(t.Name())
	if arch != runtime.GOARCH {
		dir = filepath.Join(dir, arch)
	}
	unlock, err := Lock(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	defer unlock()

	stamp, key, err := inputs(ctx, t, arch, dir, step)
	if err != nil {
		return nil, err
	}
	r := &Result{Dir: dir, Version: stamp.version, Arch: arch, Tree: t, Binaries: map[string]string{}, Images: map[string]string{}}
	m := readManifest(dir)
	var stale []string
	for _, c := range components {
		r.Binaries[c] = filepath.Join(dir, "bin", c)
		if !m[c].isUpToDate(r.Binaries[c], key) {
			stale = append(stale, c)
		}
	}
	if len(stale) == 0 {
		step.Cached(stamp.version + " as built before")
		return r, nil
	}
	for _, c := range stale {
		// The go command checks only the build ID in a file, and would not link a damaged one again.
		// It updates the time of files that are up to date, so only another size means damage.
		if info, err := os.Stat(r.Binaries[c]); err == nil && info.Size() != m[c].Size {
			if err := os.Remove(r.Binaries[c]); err != nil {
				return nil, err
			}
		}
	}
	compile := &compilation{tree: t, arch: arch, dir: dir, linkerFlags: stamp.linkerFlags()}
	if err := compile.run(ctx, stale, step); err != nil {
		return nil, err
	}
	return r, m.add(r, key, stale)
}

// Lock keeps other podenv processes out of the build folder dir.
func Lock(ctx context.Context, dir string, step *progress.Step) (unlock func(), err error) {
	return lockfile.Lock(ctx, filepath.Join(dir, ".lock"), "that builds in "+dir, step)
}

// inputs returns the stamp of binaries of t, and a digest of all their inputs: the tree's content, the
// flags, and the Go toolchain with its settings. dir is the build's folder.
func inputs(ctx context.Context, t *source.Tree, arch, dir string, step *progress.Step) (stamp, string, error) {
	step.Now("looking for edits in the tree")
	content, err := TreeContent(ctx, t.Dir, filepath.Join(dir, "work"))
	if err != nil {
		return stamp{}, "", err
	}
	s, err := newStamp(ctx, t, content)
	if err != nil {
		return stamp{}, "", err
	}
	toolchain, err := run.Command(ctx, "go", "env", "GOVERSION", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT").
		Dir(t.Dir).Env(goEnv...).Env("GOARCH=" + arch).Output()
	return s, digest.Of(content, toolchain, strings.Join(goFlags, " "), s.linkerFlags()), err
}

// manifest lists the binaries of a build by component. A file that it does not list, or that
// differs from the entry, counts as missing.
type manifest map[string]binary

// binary is one finished executable.
type binary struct {
	Key      string    `json:"key"`  // digest of all inputs
	Size     int64     `json:"size"` // bytes
	Modified time.Time `json:"modified"`
}

func manifestPath(dir string) string { return filepath.Join(dir, "manifest.json") }

// readManifest reads the manifest of the build in dir. A missing or broken manifest counts as
// empty: then everything is built again.
func readManifest(dir string) manifest {
	m := manifest{}
	if data, err := os.ReadFile(manifestPath(dir)); err != nil || json.Unmarshal(data, &m) != nil {
		return manifest{}
	}
	return m
}

// add adds components of r, built from the inputs with digest key, and writes the manifest.
func (m manifest) add(r *Result, key string, components []string) error {
	for _, c := range components {
		info, err := os.Stat(r.Binaries[c])
		if err != nil {
			return err
		}
		m[c] = binary{Key: key, Size: info.Size(), Modified: info.ModTime().UTC()}
	}
	return jsonout.Save(manifestPath(r.Dir), m)
}

// isUpToDate reports whether file is b, built from the inputs with digest key. It compares size
// and time: reading 500 MB would take longer than everything else.
func (b binary) isUpToDate(file, key string) bool {
	info, err := os.Stat(file)
	return err == nil && b.Key == key && info.Size() == b.Size && info.ModTime().Equal(b.Modified)
}
