package codegen

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// fakeGenerator is a command with the flags of Kubernetes' generators: it lists the Go
// files of each package in the package's output file.
const fakeGenerator = `package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	header := flag.String("go-header-file", "", "")
	output := flag.String("output-file", "", "")
	fail := flag.String("fail", "", "")
	flag.Parse()
	head, err := os.ReadFile(*header)
	for _, pkg := range flag.Args() {
		dir := strings.TrimPrefix(filepath.Join("staging/src", pkg), "staging/src/k8s.io/kubernetes/")
		if *fail != "" {
			err = fmt.Errorf("%s: %s", dir, *fail)
		}
		files, _ := filepath.Glob(dir + "/*.go")
		text := fmt.Sprintf("%spackage v1\n\n// of %d files\n", head, len(files))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, *output), []byte(text), 0o644)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

// pipelineTree is a fakeRelease whose generator is the fake one.
func pipelineTree(t *testing.T) string {
	t.Helper()
	files := fakeRelease()
	maps.Copy(files, map[string]string{
		"go.mod":                         "module k8s.io/kubernetes\n\ngo 1.24\n",
		"go.sum":                         "\n",
		boilerplate:                      "// header\n\n",
		"cmd/fake-gen/main.go":           fakeGenerator,
		"cmd/genswaggertypedocs/main.go": "package main\n",
		"staging/src/k8s.io/code-generator/cmd/a/main.go": "package main\n",
		"staging/src/k8s.io/code-generator/pkg/a/a.go":    "package a\n",
	})
	// Without these groups there are no fixtures to generate.
	for name := range files {
		if group, ok := strings.CutPrefix(name, "staging/src/k8s.io/api/"); ok {
			files["staging/src/k8s.io/fake/"+group] = files[name]
			delete(files, name)
		}
	}
	return fakeTree(t, files)
}

const fakeTypes = "staging/src/k8s.io/fake/core/v1/types.go"

func fakeMinor(flags ...string) *minor {
	return &minor{
		tools:             []string{"k8s.io/kubernetes/cmd/fake-gen"},
		packageGenerators: []packageGenerator{{tool: "fake-gen", marker: "deepcopy-gen", file: "zz_generated.deepcopy.go", flags: flags}},
	}
}

func TestPipelineRunsTheTreesOwnGenerators(t *testing.T) {
	tree := pipelineTree(t)
	o := Options{Tree: tree, Base: released, Release: "v1.33.13", Work: t.TempDir()}
	write(t, tree, map[string]string{fakeTypes: "package v1\n\ntype Pod struct{ Name string }\n"})
	if err := generate(t.Context(), o, fakeMinor().generate, nil); err != nil {
		t.Fatal(err)
	}
	const made = "staging/src/k8s.io/fake/core/v1/zz_generated.deepcopy.go"
	if got, want := git(t, tree, "status", "--porcelain"), " M "+fakeTypes+"\n M "+made; got != want {
		t.Errorf("the tree differs in\n%s\nwant\n%s", got, want)
	}
	// Two files: the generator's old output is deleted before it runs.
	if got, want := read(t, tree, made), "// header\n\npackage v1\n\n// of 2 files\n"; got != want {
		t.Errorf("%s is %q, want %q", made, got, want)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Work, "run-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAGeneratorOfAllPackagesRunsForThoseThatAChangeDoesNotReach(t *testing.T) {
	tree := pipelineTree(t)
	write(t, tree, map[string]string{fakeTypes: "package v1\n\ntype Pod struct{ Name string }\n"})
	m := fakeMinor()
	m.packageGenerators[0].allPackages = true
	if err := generate(t.Context(), Options{Tree: tree, Base: released, Release: "v1.37.1", Work: t.TempDir()}, m.generate, nil); err != nil {
		t.Fatal(err)
	}
	const unreached = "staging/src/k8s.io/fake/rbac/v1/zz_generated.deepcopy.go"
	if got, want := read(t, tree, unreached), "// header\n\npackage v1\n\n// of 2 files\n"; got != want {
		t.Errorf("%s is %q, want %q", unreached, got, want)
	}
}

func TestPipelineBuildsTheGeneratorsOnce(t *testing.T) {
	tree := pipelineTree(t)
	o := Options{Tree: tree, Base: released, Release: "v1.33.13", Work: t.TempDir()}
	build := func() *toolbox {
		t.Helper()
		tools, err := buildTools(t.Context(), o, fakeMinor(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return tools
	}
	first := build()
	mark := filepath.Join(first.dir, "mark")
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if second := build(); second.dir != first.dir {
		t.Error("the same sources were built twice")
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error("the same sources were built again in place")
	}
	write(t, tree, map[string]string{"staging/src/k8s.io/code-generator/pkg/a/a.go": "package a\n\nconst New = 1\n"})
	if third := build(); third.dir == first.dir {
		t.Error("a changed generator was not built")
	}
}

func TestPipelineErrorHasTheGeneratorsOutputAndTheLog(t *testing.T) {
	tree := pipelineTree(t)
	write(t, tree, map[string]string{fakeTypes: "package v1\n\ntype Pod struct{ Name string }\n"})
	logs := t.TempDir()
	step := progress.New(&strings.Builder{}, false, 0, logs).Step("generate")
	o := Options{Tree: tree, Base: released, Release: "v1.33.13", Work: t.TempDir()}
	err := step.End(generate(t.Context(), o, fakeMinor("--fail=no such type").generate, step))
	var failed *run.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want the error of the command", err)
	}
	for _, want := range []string{"generating zz_generated.deepcopy.go", "k8s.io/fake/core/v1: no such type", filepath.Join(logs, "generate.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if log := read(t, logs, "generate.log"); !strings.Contains(log, "no such type") {
		t.Errorf("the log has not the generator's output:\n%s", log)
	}
	if got := git(t, tree, "status", "--porcelain"); got != " M "+fakeTypes {
		t.Errorf("the tree differs in\n%s\nwant the edit only", got)
	}
}

func TestTwoGeneratorsAtATime(t *testing.T) {
	p := &pipeline{step: progress.New(&strings.Builder{}, false, 0, t.TempDir()).Step("generate")}
	var running, most int
	var mu sync.Mutex
	count := func(by int) {
		mu.Lock()
		defer mu.Unlock()
		running += by
		most = max(most, running)
	}
	generators := map[string]generator{}
	for i := range 6 {
		generators[strconv.Itoa(i)] = func(context.Context) (outputs, error) {
			count(1)
			defer count(-1)
			time.Sleep(20 * time.Millisecond)
			return outputs{strconv.Itoa(i): nil}, nil
		}
	}
	made, err := p.together(t.Context(), generators)
	if err != nil || len(made) != len(generators) {
		t.Errorf("made %v: %v", made, err)
	}
	if most != 2 {
		t.Errorf("%d at a time", most)
	}
}

func TestPipelineErrorOfAGeneratorThatDoesNotCompile(t *testing.T) {
	tree := pipelineTree(t)
	write(t, tree, map[string]string{
		fakeTypes:              "package v1\n\ntype Pod struct{ Name string }\n",
		"cmd/fake-gen/main.go": "package main\n\nfunc main() { undefined() }\n",
	})
	o := Options{Tree: tree, Base: released, Release: "v1.33.13", Work: t.TempDir()}
	err := generate(t.Context(), o, fakeMinor().generate, nil)
	if err == nil || !strings.Contains(err.Error(), "building the generators of v1.33.13") || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v, want the compiler's error", err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Work, "tools", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestPipelineErrorOfAFolderThatIsNoTree(t *testing.T) {
	tree := fakeTree(t, fakeRelease())
	editPodSpec(t, tree)
	err := generate(t.Context(), Options{Tree: tree, Base: released, Release: "v1.33.13", Work: t.TempDir()}, fakeMinor().generate, nil)
	if err == nil || !strings.Contains(err.Error(), "an assembled tree") {
		t.Errorf("got %v, want an error that asks for an assembled tree", err)
	}
}

func TestMissingProtocSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := checkProtoc()
	if err == nil || !strings.Contains(err.Error(), "apt-get install protobuf-compiler") {
		t.Errorf("got %v, want the command that installs protoc", err)
	}
}
