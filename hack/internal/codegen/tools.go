package codegen

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// toolbox holds the generators, built from a tree.
type toolbox struct {
	dir    string // with the commands in bin/
	env    []string
	goRoot string
}

// goEnv is the environment of the go command in a tree: the tree's go.mod applies, not its
// workspace, and all trees share objects in the build cache.
var goEnv = []string{"GOWORK=off", "GOFLAGS=-mod=readonly -trimpath", "CGO_ENABLED=0", "LC_ALL=C"}

// buildTools builds the commands of m in o.Tree, once per content of their sources.
func buildTools(ctx context.Context, o Options, m *minor, step *progress.Step) (*toolbox, error) {
	goRoot, err := run.Command(ctx, "go", "env", "GOROOT", "GOVERSION").Env(goEnv...).Dir(o.Tree).Output()
	if err != nil {
		return nil, err
	}
	goRoot, goVersion, _ := strings.Cut(goRoot, "\n")
	key, err := toolsKey(o, m, goVersion)
	if err != nil {
		return nil, err
	}
	t := &toolbox{dir: filepath.Join(o.Work, "tools", key), goRoot: goRoot}
	t.env = append(goEnv, "PATH="+strings.Join([]string{
		filepath.Join(t.dir, "bin"), filepath.Join(goRoot, "bin"), os.Getenv("PATH"),
	}, string(os.PathListSeparator)))
	if _, err := os.Stat(t.dir); err == nil {
		return t, nil
	}
	return t, t.build(ctx, o, m, step)
}

// build builds the commands in a temporary folder, and renames that to t.dir.
func (t *toolbox) build(ctx context.Context, o Options, m *minor, step *progress.Step) error {
	step.Now("building the generators")
	if err := os.MkdirAll(filepath.Dir(t.dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(t.dir), "building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	built := filepath.Join(tmp, "tools")
	args := []string{"build", "-o", filepath.Join(built, "bin") + "/"}
	if m.toolsVersion != "" {
		modFile, err := withTools(ctx, o.Tree, tmp, m.toolsVersion, step)
		if err != nil {
			return fmt.Errorf("getting %s %s for the generators of %s: %w", toolsModule, m.toolsVersion, o.Release, err)
		}
		args = append(args, "-modfile="+modFile)
	}
	if err := run.Command(ctx, "go", append(args, m.tools...)...).Log(step.Log()).Env(goEnv...).Dir(o.Tree).Run(); err != nil {
		return fmt.Errorf("building the generators of %s: %w", o.Release, err)
	}
	err = os.Rename(built, t.dir)
	if _, statErr := os.Stat(t.dir); statErr == nil {
		return nil // from this run, or from another one that was faster
	}
	return err
}

const toolsModule = "golang.org/x/tools"

// withTools writes to dir the tree's go.mod with version of toolsModule, and its go.sum with
// what goimports needs.
func withTools(ctx context.Context, tree, dir, version string, step *progress.Step) (modFile string, err error) {
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := copyFile(filepath.Join(tree, name), filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	modFile = filepath.Join(dir, "go.mod")
	return modFile, run.Command(ctx, "go", "get", "-modfile="+modFile, toolsModule+"/cmd/goimports@"+version).
		Log(step.Log()).Env(goEnv...).Env("GOFLAGS=").Dir(tree).Run()
}

// toolsKey is a hash of everything that the commands are built from.
func toolsKey(o Options, m *minor, goVersion string) (string, error) {
	parts := append([]string{o.Release, goVersion, m.toolsVersion}, m.tools...)
	for _, root := range []string{"go.mod", "go.sum", "cmd/genswaggertypedocs", stagingRoot + "k8s.io/code-generator/cmd", stagingRoot + "k8s.io/code-generator/pkg"} {
		err := filepath.WalkDir(filepath.Join(o.Tree, root), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			sum, err := digest.File(name)
			rel, _ := filepath.Rel(o.Tree, name)
			parts = append(parts, rel, sum)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("looking for the generators' sources: %w; is %s an assembled tree?", err, o.Tree)
		}
	}
	return digest.Of(parts...)[:32], nil
}

// gopath is the GOPATH of v: a folder next to it, whose src folder links to v's modules.
func (v *view) gopath() string { return v.dir + ".gopath" }

// sources is where generators that do not support modules find v's packages by import path,
// and write to them.
func (v *view) sources() string { return filepath.Join(v.gopath(), "src") }

// linkGopath creates the GOPATH of v, with symbolic links to the folders of its modules.
func (v *view) linkGopath() error {
	staged, err := filepath.Glob(v.path(stagingRoot + "k8s.io/*"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(v.sources(), "k8s.io"), 0o755); err != nil {
		return err
	}
	for _, dir := range append(staged, v.dir) {
		name := filepath.Base(dir)
		if dir == v.dir {
			name = "kubernetes"
		}
		if err := os.Symlink(dir, filepath.Join(v.sources(), "k8s.io", name)); err != nil {
			return err
		}
	}
	return nil
}

// linkDependencies creates a GOPATH in dir with the packages outside the tree that packages
// import, directly or not.
func linkDependencies(ctx context.Context, tree, dir string, packages []string) error {
	args := append([]string{"list", "-deps", "-e", "-f", "{{if not .Standard}}{{.ImportPath}}\t{{.Dir}}{{end}}"}, packages...)
	out, err := run.Command(ctx, "go", args...).Env(goEnv...).Dir(tree).Output()
	if err != nil {
		return fmt.Errorf("listing what the API packages import: %w", err)
	}
	for line := range strings.Lines(out) {
		name, from, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if from == "" || strings.HasPrefix(from, tree+string(filepath.Separator)) {
			continue
		}
		// Files, not folders: a package's folder may contain packages of other modules.
		files, err := filepath.Glob(filepath.Join(from, "*.go"))
		if err != nil {
			return err
		}
		to := filepath.Join(dir, "src", filepath.FromSlash(name))
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, file := range files {
			if err := os.Symlink(file, filepath.Join(to, filepath.Base(file))); err != nil {
				return err
			}
		}
	}
	return nil
}
