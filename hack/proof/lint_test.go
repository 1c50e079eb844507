package proof

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/lintcmd/version"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"

	"podenv.dev/hack/internal/run"
)

// lint leaves the processor to the build, for which more checks wait.
func lint(c *check) error {
	c.part("gofmt", func() error {
		files, err := c.tracked("*.go")
		if err != nil {
			return err
		}
		out, err := c.command("gofmt", append([]string{"-l", "--"}, files...)...).Output()
		if err == nil && out != "" {
			err = fmt.Errorf("gofmt -w would change:\n%s", out)
		}
		return err
	})
	c.part("go mod tidy -diff", c.command("nice", "-n19", "go", "mod", "tidy", "-diff").Run)
	c.part("go vet and staticcheck", func() error {
		c.step.Now("go vet and staticcheck")
		cmd := c.command("nice", "-n19", os.Args[0], "./...").Env(asLinter + "=" + repo.Root)
		if os.Getenv("GOGC") == "" {
			cmd.Env(run.LessGC...)
		}
		return cmd.Run()
	})
	// Kubernetes is built for 32 bits, too, and the types of system calls differ by architecture.
	for _, arch := range []string{"386", "s390x"} {
		c.part("go vet for "+arch, func() error { return vetFor(c.ctx, arch, repo.Root, "./pkg/...") })
	}
	// The oldest release is compiled as Go 1.21, by its go.mod, and every release gets these packages with their tests.
	c.part("go test for Go 1.21", c.command("nice", "-n19", "go", "test", "-c", "-o", os.DevNull, "-gcflags=-lang=go1.21", "./pkg/...").Run)
	c.part("shellcheck", c.shellcheck)
	c.part("no generated Kubernetes code in git", func() error {
		files, err := c.tracked("*zz_generated*", "*generated.pb.go", "*generated.proto", "*types_swagger_doc_generated.go")
		if err == nil && len(files) > 0 {
			err = fmt.Errorf("delete what the tree's generators make: %s", strings.Join(files, ", "))
		}
		return err
	})
	return nil
}

// asLinter is the variable with the module that makes this program runLinter.
const asLinter = "PODENV_PROOF_AS_LINTER"

// runLinter runs the checks of go vet and of staticcheck on the module in dir, in one pass. Both need facts about all
// packages that are imported, of Kubernetes, too: to find them takes as long as to compile the packages.
func runLinter(dir string) {
	if err := os.Chdir(dir); err != nil {
		log.Fatal(err)
	}
	cmd := lintcmd.NewCommand("lint")
	cmd.SetVersion(version.Version, version.MachineVersion+" with go vet") // results are kept by it
	cmd.ParseFlags(os.Args[1:])
	cmd.AddAnalyzers(simple.Analyzers...)
	cmd.AddAnalyzers(staticcheck.Analyzers...)
	cmd.AddAnalyzers(stylecheck.Analyzers...)
	cmd.AddAnalyzers(unused.Analyzer)
	cmd.AddBareAnalyzers(vet.Suite...)
	cmd.Run()
}

// vetFor runs the checks of go vet on packages of the module in dir, as they are for arch. It reads the packages that they
// import instead of compiling them for arch.
func vetFor(ctx context.Context, arch, dir string, patterns ...string) error {
	all, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax, Tests: true, Context: ctx, Dir: dir, Env: append(os.Environ(), "GOARCH="+arch, "CGO_ENABLED=0"),
	}, patterns...)
	if err != nil {
		return err
	}
	packages.Visit(all, nil, func(pkg *packages.Package) {
		for _, e := range pkg.Errors {
			err = errors.Join(err, e)
		}
	})
	if err != nil {
		return err
	}
	graph, err := checker.Analyze(vet.Suite, all, nil)
	if err != nil {
		return err
	}
	var found strings.Builder
	if err := graph.PrintText(&found, 0); err != nil {
		return err
	}
	if found.Len() > 0 {
		return errors.New(found.String())
	}
	return nil
}

// command prepares a command that runs in the repository, with its output in the check's log.
func (c *check) command(name string, args ...string) *run.Cmd {
	return run.Command(c.ctx, name, args...).Dir(repo.Root).Log(c.step.Log())
}

// tracked lists the files of the repository that git knows or would add.
func (c *check) tracked(patterns ...string) ([]string, error) {
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z", "--"}, patterns...)
	out, err := c.command("git", args...).Output()
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(repo.Root, name)); name != "" && err == nil {
			files = append(files, name)
		}
	}
	return files, nil
}

// shellcheck checks every file that a shell runs, known by its first line.
func (c *check) shellcheck() error {
	files, err := c.tracked()
	if err != nil {
		return err
	}
	var scripts []string
	for _, name := range files {
		if isShell(filepath.Join(repo.Root, name)) {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) == 0 {
		return errors.New("no shell script found, though .ci/run is one: is this a checkout?")
	}
	return c.command("shellcheck", scripts...).Run()
}

func isShell(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := f.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	return bytes.HasPrefix(line, []byte("#!")) && (bytes.Contains(line, []byte("bash")) || bytes.HasSuffix(line, []byte("sh")))
}

// newModule writes a module of these files, and returns its folder.
func newModule(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLinterFindsWhatVetAndStaticcheckFind(t *testing.T) {
	dir := newModule(t, map[string]string{
		"m.go": `package m

import "fmt"

func unused() {}

// Logf has the arguments of fmt.Printf.
func Logf(format string, args ...any) { fmt.Printf(format, args...) }
`,
		"n/n.go": `package n

import "example.com/m"

// Run has an argument too few.
func Run() { m.Logf("%d %s", 1) }
`,
	})
	_, err := run.Command(t.Context(), os.Args[0], "./...").Env(asLinter+"="+dir, "GOFLAGS=", "GOWORK=off").Output()
	for _, want := range []string{"func unused is unused (U1000)", "format %s reads arg #2, but call has 1 arg (printf)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("lint does not print %q: %v", want, err)
		}
	}
}

func TestVetForAnArchitecture(t *testing.T) {
	t.Setenv("GOFLAGS", "")
	for text, want := range map[string]string{
		"var tooBig int = 1 << 40":                         "value in variable declaration (overflows)",
		"var shifted = func(x int) int { return x << 40 }": "x (32 bits) too small for shift of 40",
	} {
		dir := newModule(t, map[string]string{"m.go": "package m\n\n" + text + "\n"})
		if err := vetFor(t.Context(), "amd64", dir, "./..."); err != nil {
			t.Errorf("%s: %v for amd64", text, err)
		}
		if err := vetFor(t.Context(), "386", dir, "./..."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v for 386, want %q", text, err, want)
		}
	}
}

func TestIsShellKnowsScriptsByTheirFirstLine(t *testing.T) {
	for text, want := range map[string]bool{
		"#!/bin/sh\n": true, "#!/usr/bin/env bash\nset -e\n": true, "#!/usr/bin/python3\n": false, "package main\n": false, "": false,
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := isShell(path); got != want {
			t.Errorf("isShell(%q) = %t", strings.TrimSpace(text), got)
		}
	}
}
