package digest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOfDistinguishesLists(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{nil, {""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"1:a"}, {"a", ""}, {"", "a"}} {
		sum := Of(parts...)
		if len(sum) != 64 || sum != Of(parts...) {
			t.Errorf("Of(%q) = %q", parts, sum)
		}
		if other, ok := seen[sum]; ok {
			t.Errorf("%q and %q hash alike", other, parts)
		}
		seen[sum] = parts
	}
}

func TestFilesHashesContentInOrder(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, content := range []string{"one", "two"} {
		path := filepath.Join(dir, content)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	// As sha256sum prints them.
	want := []string{
		"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
		"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
	}
	if got, err := Files(paths...); err != nil || !slices.Equal(got, want) {
		t.Errorf("Files = %q, %v; want %q", got, err, want)
	}
	if _, err := Files(paths[0], filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}
