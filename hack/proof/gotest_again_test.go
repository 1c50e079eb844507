package proof

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/series"
	"podenv.dev/hack/internal/source"
)

// onceEach is a helper of tests that behave otherwise the first time that they run.
const onceEach = `
func first(name string) bool { _, err := os.Stat(name); os.WriteFile(name, nil, 0o644); return err != nil }
`

// treeOf returns a tree of a release with the file a_test.go, to which a patch adds b_test.go.
func treeOf(t *testing.T, release, added string) *source.Tree {
	t.Helper()
	setSteps(t)
	repo := gitrepo.Repo{Dir: t.TempDir()}
	commit := func(file, text string) {
		if err := os.WriteFile(filepath.Join(repo.Dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "--quiet", "--message", file}} {
			if err := repo.Run(t.Context(), args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(repo.Dir, "go.mod"), []byte("module k8s.io/kubernetes\n\ngo 1.21\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	commit("a_test.go", "package a\nimport (\"os\"; \"testing\")\nvar _ testing.TB\n"+onceEach+release)
	commit("b_test.go", "package a\nimport \"testing\"\nvar _ testing.TB\n"+added)
	return &source.Tree{Dir: repo.Dir, Series: series.Series{Name: "v1.33"}}
}

// setSteps sets the steps for checks that a test runs itself.
func setSteps(t *testing.T) {
	before := steps
	steps = &pipeline.Pipeline{}
	t.Cleanup(func() { steps = before })
}

func TestSecondRunOfUpstreamTests(t *testing.T) {
	for name, test := range map[string]struct {
		release, added string
		failing        []string
	}{
		"a test of the release that passes the second time has passed": {
			release: `func TestFlakes(t *testing.T) { if first("flaked") { t.Error("now and then") } }`,
		},
		"a test of ours that would pass the second time has failed": {
			release: `func TestGood(t *testing.T) {}`,
			added:   `func TestFlakes(t *testing.T) { if first("flaked") { t.Error("now and then") } }`,
			failing: []string{"TestFlakes"},
		},
		"a test that a panic kept from running runs": {
			release: `func TestPanics(t *testing.T) { if first("panicked") { panic("now and then") } }
func TestHidden(t *testing.T) { t.Error("always") }`,
			failing: []string{"TestHidden"},
		},
		"a test that never runs has failed": {
			release: `func TestExits(t *testing.T) { os.Exit(1) }
func TestHidden(t *testing.T) {}`,
			failing: []string{"TestExits", "TestHidden"},
		},
		"the tests behind one of ours that panics run": {
			added: `func TestA(t *testing.T) { panic("always") }
func TestHidden(t *testing.T) {}`,
			failing: []string{"TestA"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := treeOf(t, test.release, test.added)
			c := &check{T: t, ctx: t.Context()}
			cases, err := c.upstreamTestsOf(tree, tree.Dir, []string{"k8s.io/kubernetes"})
			if err != nil {
				t.Fatal(err)
			}
			var failing []string
			for _, test := range cases {
				if failed(test) {
					failing = append(failing, test.Name)
				}
			}
			slices.Sort(failing)
			if !slices.Equal(failing, test.failing) {
				t.Errorf("failing: %q, want %q", failing, test.failing)
			}
		})
	}
}

func TestCountGoTestSeesFilesOutsideOfTheModule(t *testing.T) {
	dir := t.TempDir()
	module := filepath.Join(dir, "module")
	if err := os.Mkdir(module, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.test\n\ngo 1.21\n",
		"a_test.go": `package a
import ("os"; "testing")
func TestReads(t *testing.T) {
	pod, err := os.ReadFile("../pod")
	if err != nil { t.Fatal(err) }
	os.WriteFile("../read", pod, 0o644)
}
`} {
		if err := os.WriteFile(filepath.Join(module, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"one", "another"} {
		if err := os.WriteFile(filepath.Join(dir, "pod"), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		c := &check{T: t, ctx: t.Context()}
		if err := c.countGoTest(module, []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, "./..."); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "read")); err != nil || string(got) != want {
			t.Errorf("the test read %q, want %q (%v)", got, want, err)
		}
	}
}
