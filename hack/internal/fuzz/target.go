package fuzz

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// Module is a folder in which go runs.
type Module struct {
	Dir string
	Env []string // for go
	// Unguided runs the targets without Go's coverage counters, so that it is not found
	// which inputs reach new code. Go looks at the counters of everything that is linked
	// in after each execution: with much of Kubernetes that is most of the time.
	Unguided bool
}

// Target is one fuzz target.
type Target struct {
	Module  Module
	Package string // import path
	Dir     string // of the package
	Name    string
}

// String names the target uniquely: podenv.dev/pkg/kubelet/envfile.FuzzParse.
func (t Target) String() string { return t.Package + "." + t.Name }

// Targets returns the fuzz targets of packages, which are named as go test takes them,
// in the order in which go lists them. It compiles the packages' tests.
func (m Module) Targets(ctx context.Context, packages []string, step *progress.Step) ([]Target, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	step.Now("looking for fuzz targets in %s", strings.Join(packages, " "))
	dirs, err := m.dirs(ctx, packages)
	if err != nil {
		return nil, err
	}
	out, err := run.Command(ctx, "go", append([]string{"test", "-list=^Fuzz"}, packages...)...).Dir(m.Dir).Env(m.Env...).Log(step.Log()).Output()
	if err != nil {
		return nil, err
	}
	targets := listed(out)
	for i := range targets {
		targets[i].Module, targets[i].Dir = m, dirs[targets[i].Package]
	}
	return targets, nil
}

// dirs returns the folders of packages by import path.
func (m Module) dirs(ctx context.Context, packages []string) (map[string]string, error) {
	out, err := run.Command(ctx, "go", append([]string{"list", "-f={{.ImportPath}}\t{{.Dir}}"}, packages...)...).Dir(m.Dir).Env(m.Env...).Output()
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for _, line := range strings.Split(out, "\n") {
		if path, dir, ok := strings.Cut(line, "\t"); ok {
			dirs[path] = dir
		}
	}
	return dirs, nil
}

var (
	targetName = regexp.MustCompile(`^Fuzz\w*$`)
	listedLine = regexp.MustCompile(`^ok\s+(\S+)`)
)

// listed reads what go test -list prints: a package's targets, then a line that names
// the package.
func listed(out string) []Target {
	var targets []Target
	named := 0
	for _, line := range strings.Split(out, "\n") {
		if targetName.MatchString(line) {
			targets = append(targets, Target{Name: line})
		} else if match := listedLine.FindStringSubmatch(line); match != nil {
			for ; named < len(targets); named++ {
				targets[named].Package = match[1]
			}
		}
	}
	return targets
}

// LeafPackages are patterns of the packages of the repository at root that go into
// Kubernetes.
func LeafPackages(root string) []string {
	var patterns []string
	for _, dir := range []string{"pkg", "staging"} {
		if _, err := os.Stat(filepath.Join(root, dir)); err == nil {
			patterns = append(patterns, "./"+dir+"/...")
		}
	}
	return patterns
}

var declaration = regexp.MustCompile(`^func Fuzz\w*\(`)

// hasTarget reports whether a Go file declares a fuzz target.
func hasTarget(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if declaration.Match(lines.Bytes()) {
			return true, nil
		}
	}
	return false, lines.Err()
}
