package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

func TestSpecsAreCompiledOnceForEachTree(t *testing.T) {
	l, tree := newTree(t)
	calls := filepath.Join(t.TempDir(), "calls")
	fakeGo(t, `case $1 in test|build|mod) echo "$@" >>`+calls+`; exit 0 ;; esac`)
	write(t, filepath.Join(tree.Dir, "go.sum"), "")
	commit(t, tree.Dir, "go.sum")
	assembled(t, tree.Dir)
	r := &Result{Dir: l.Build("v1.33"), Tree: tree}
	compile := func() (string, *Specs) {
		t.Helper()
		os.Remove(calls)
		s, err := BuildSpecs(t.Context(), r, nil)
		if err != nil {
			t.Fatal(err)
		}
		called, _ := os.ReadFile(calls)
		return string(called), s
	}
	called, s := compile()
	for _, want := range []string{"-require=k8s.io/sample-apiserver@v0.33.5 " + filepath.Join(r.Dir, "specs/go.mod"), "-o " + s.Dir + "/e2e.test", "./test/images/agnhost"} {
		if !strings.Contains(called, want) {
			t.Errorf("go was not called with %s:\n%s", want, called)
		}
	}
	if edits := gitIn(t, tree.Dir, "status", "--short"); edits != "" {
		t.Errorf("the tree has edits: %s", edits)
	}
	if called, same := compile(); called != "" || same.Key != s.Key {
		t.Errorf("an unchanged tree was compiled again: %s", called)
	}
	edit(t, tree)
	if called, other := compile(); called == "" || other.Key == s.Key {
		t.Error("an edited tree was not compiled")
	}
	tree.Series.Name = "v1.99"
	_, err := BuildSpecs(t.Context(), r, nil)
	testutil.CheckError(t, err, "add one to sampleAPIServer")
}
