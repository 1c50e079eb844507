package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/pipeline"
	"podenv.dev/hack/internal/progress"
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

// setSteps sets the steps for checks that a test runs itself, and returns what they show.
func setSteps(t *testing.T) *strings.Builder {
	before, shown := steps, &strings.Builder{}
	steps = &pipeline.Pipeline{Reporter: progress.To(shown, true, t.TempDir())}
	t.Cleanup(func() { steps = before })
	return shown
}

func TestSecondRunOfUpstreamTests(t *testing.T) {
	var many, manyNames []string
	for i := range maxFlakes {
		manyNames = append(manyNames, fmt.Sprintf("TestBad%02d", i))
		many = append(many, "func "+manyNames[i]+`(t *testing.T) { t.Error("always") }`)
	}
	for name, test := range map[string]struct {
		release, added string
		failing        []string
		shown          string
	}{
		"a test of the release that passes the second time has passed": {
			release: `func TestFlakes(t *testing.T) { if first("flaked") { t.Error("now and then") } }`,
			shown:   "1 failed tests of the release passed when they ran again: k8s.io/kubernetes TestFlakes\n",
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
			shown:   "1 failed tests of the release passed when they ran again: k8s.io/kubernetes TestPanics\n",
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
		"with more failures than may be flakes, none runs again, and a test that has not run has failed": {
			release: strings.Join(many, "\n") + `
func TestPanics(t *testing.T) { panic("always") }
func TestHidden(t *testing.T) {}`,
			failing: append(manyNames, "TestHidden", "TestPanics"),
		},
		"subtests are no failures of their own": {
			release: `func TestFlakes(t *testing.T) { flakes := first("flaked"); for range [30]int{} { t.Run("", func(t *testing.T) { if flakes { t.Error("now and then") } }) } }`,
			shown:   "1 failed tests of the release passed when they ran again: k8s.io/kubernetes TestFlakes\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shown := setSteps(t)
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
			if strings.TrimSpace(shown.String()) != strings.TrimSpace(test.shown) {
				t.Errorf("shown: %q, want %q", shown, test.shown)
			}
		})
	}
}

func TestOwnTestsAreThoseWithALineInTheDiff(t *testing.T) {
	release := `
func TestSame(t *testing.T) {
	t.Log()
}
// a comment
func TestBehindAComment(t *testing.T) {
}
func TestChanged(t *testing.T) {
	t.Log("old")
}
func helper() {
}

func TestShorter(t *testing.T) {
	t.Log("one")
	t.Log("two")
}
func ExampleChanged() {
	_ = "old"
	// Output:
}
func TestLast(t *testing.T) {
}
`
	tree := treeOf(t, release, "func FuzzAdded(f *testing.F) {}\nfunc notATest() {}")
	file := filepath.Join(tree.Dir, "a_test.go")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := strings.NewReplacer(`"old"`, `"new"`, "\tt.Log(\"two\")\n", "", "// a comment\n", "", "func helper() {\n", "func helper() {\n\t_ = 1\n").Replace(string(before))
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
	own, err := ownTests(t.Context(), tree, tree.Dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]string]bool{}
	for _, name := range []string{"TestChanged", "TestShorter", "ExampleChanged", "FuzzAdded"} {
		want[[2]string{"k8s.io/kubernetes", name}] = true
	}
	if diff := cmp.Diff(want, own); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
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
