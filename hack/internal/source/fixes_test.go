package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/series"
)

// fix writes a patch of the release, made in the stock tree, and leaves the tree as it was.
func (w *world) fix(name, old, new string) string {
	w.Helper()
	path := filepath.Join(w.layout.Tree("v1.33-stock"), "pkg/kubelet/kubelet.go")
	content, err := os.ReadFile(path)
	w.ok(err)
	w.ok(os.WriteFile(path, []byte(strings.Replace(string(content), old, new, 1)), 0o644))
	stock := repo{w.assembly(Options{Stock: true}).tree.Repo}
	w.ok(stock.Run(w.Context(), "commit", "--quiet", "--all", "--message="+name))
	_, patch, err := stock.formatPatch(w.Context(), "HEAD", 1, nil)
	w.ok(err)
	w.ok(stock.Run(w.Context(), "reset", "--quiet", "--hard", "HEAD^"))
	w.write(name, string(patch))
	return filepath.Join(w.layout.Root, name)
}

func TestAStockTreeHasTheFixesThatAreAskedFor(t *testing.T) {
	w := newWorld(t)
	stock := Options{Stock: true}
	without, err := w.assemble(stock)
	w.ok(err)
	// The second one is in the context of the first.
	one := w.fix("one.patch", "func Step10() int { return 10 }", "func Step10() int { return 1010 }")
	two := w.fix("two.patch", "func Step11() int { return 11 }", "func Step11() int { return 1111 }")
	for _, c := range []struct {
		fixes []string
		has   string
	}{{[]string{one, two}, "1010 1111"}, {[]string{two}, "10 1111"}, {nil, "10 11"}} {
		w.series.Fixes = c.fixes
		tree, err := w.assemble(stock)
		w.ok(err)
		data, err := os.ReadFile(filepath.Join(tree.Dir, "pkg/kubelet/kubelet.go"))
		w.ok(err)
		ten, eleven, _ := strings.Cut(c.has, " ")
		if !strings.Contains(string(data), "Step10() int { return "+ten+" }") || !strings.Contains(string(data), "Step11() int { return "+eleven+" }") {
			t.Errorf("with %d fixes the steps do not return %s", len(c.fixes), c.has)
		}
		if (tree.Key == without.Key) != (len(c.fixes) == 0) {
			t.Errorf("with %d fixes the key is %s, without them %s", len(c.fixes), tree.Key, without.Key)
		}
	}
	w.series.Fixes = []string{one, two}
	out := filepath.Join(w.layout.Root, "export")
	files, err := w.assembly(stock).exportTree(w.Context(), out, false)
	w.ok(err)
	for i, name := range []string{"one.patch", "two.patch"} {
		stored, exported := w.read(name), w.read("export/"+filepath.Base(files[i]))
		if exported != string(series.WithoutTrailers([]byte(stored))) {
			t.Errorf("%s is exported as\n%s", name, exported)
		}
	}
	if body := w.read("export/0002-two.patch.md"); len(files) != 2 || strings.Contains(body, "come first") {
		t.Errorf("%d files are exported; the body of the second is\n%s", len(files), body)
	}
	w.write("one.patch", "no patch")
	w.series.Fixes = []string{one}
	if _, err := w.assemble(stock); err == nil || !strings.Contains(err.Error(), "one.patch of series v1.33 cannot be read as a patch") {
		t.Errorf("of a file that is none: %v", err)
	}
}
