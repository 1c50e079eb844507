package build

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// fakeRelease is a tiny Kubernetes: seven programs that print the version that they are stamped
// with and a word from a shared package.
func fakeRelease() map[string]string {
	files := map[string]string{
		"go.mod": `module k8s.io/kubernetes

go 1.24.0

require k8s.io/component-base v0.0.0

replace k8s.io/component-base => ./staging/src/k8s.io/component-base
`,
		"staging/src/k8s.io/component-base/go.mod": "module k8s.io/component-base\n\ngo 1.24.0\n",
		"staging/src/k8s.io/component-base/version/base.go": `package version

var gitVersion, gitCommit, gitTreeState, buildDate, gitMajor, gitMinor string

// Print prints the linker's values.
func Print() {
	println(gitVersion, gitMajor, gitMinor, gitTreeState, buildDate, len(gitCommit))
}
`,
		"pkg/word/word.go": "package word\n\nconst Word = \"stock\"\n",
		"pkg/node/node.go": "package node\n\nconst Word = \"node\"\n",
	}
	for _, c := range Components {
		pkg := "word"
		if c == "kubelet" {
			pkg = "node"
		}
		files["cmd/"+c+"/main.go"] = fmt.Sprintf(`package main

import (
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/%[1]s"
)

func main() {
	version.Print()
	println(%[1]s.Word)
}
`, pkg)
	}
	return files
}

// newTree returns a layout, and in it a patched tree of fakeRelease with one patch for
// each function in patches, which edits the tree.
func newTree(t *testing.T, patches ...func(dir string)) (layout.Layout, *source.Tree) {
	t.Helper()
	l := layout.Layout{Root: t.TempDir()}
	write(t, filepath.Join(l.Patches("v1.33"), "go.mod"),
		"module podenv.dev/patches/v1.33\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v1.33.13\n")
	s, err := series.Load(l, "v1.33")
	if err != nil {
		t.Fatal(err)
	}
	tree := &source.Tree{Dir: l.Tree("v1.33"), Series: s}
	for file, content := range fakeRelease() {
		write(t, filepath.Join(tree.Dir, file), content)
	}
	gitIn(t, tree.Dir, "init", "--quiet")
	commit(t, tree.Dir, "Kubernetes v1.33.13")
	for i, patch := range patches {
		patch(tree.Dir)
		commit(t, tree.Dir, fmt.Sprintf("kubelet: change number %d", i+1))
		gitIn(t, tree.Dir, "format-patch", "--quiet", "-1", "--start-number", fmt.Sprint(i+1), "--output-directory", s.Dir)
	}
	assembled(t, tree.Dir)
	return l, tree
}

// assembled records the last commit of the tree in dir as one of assembly.
func assembled(t *testing.T, dir string) {
	t.Helper()
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git/podenv/state.json"), fmt.Sprintf(`{"key": "k", "steps": [{"commit": %q}]}`, strings.TrimSpace(string(head))))
}

func commit(t *testing.T, dir, message string) {
	t.Helper()
	gitIn(t, dir, "add", "--all")
	gitIn(t, dir, "commit", "--quiet", "--allow-empty", "-m", message)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fakeGo puts a go command first in PATH that runs script and then the real go.
func fakeGo(t *testing.T, script string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "go")
	write(t, file, fmt.Sprintf("#!/bin/sh\n%s\nexec %s \"$@\"\n", script, real))
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// countBuilds counts the calls of `go build` from now on.
func countBuilds(t *testing.T) (count func() int) {
	t.Helper()
	calls := filepath.Join(t.TempDir(), "calls")
	fakeGo(t, "[ \"$1\" != build ] || echo x >>"+calls)
	return func() int {
		data, err := os.ReadFile(calls)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.Count(string(data), "x")
	}
}

// outputOf runs a built program and returns its output.
func outputOf(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}
