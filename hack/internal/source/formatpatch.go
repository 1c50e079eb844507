package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// formatFlags make a patch file depend on its commit's content alone, so that it is the
// same on every machine and changes only with the change itself:
//   - no commit ids and git versions: --zero-commit, --no-signature;
//   - no numbering in subjects, and no statistics, whose numbers and column widths
//     change with every edit: --no-numbered, --no-stat;
//   - --full-index: abbreviated blob ids get longer as a repository grows, and whole ones
//     are what `git am --3way` looks up;
//   - every default of the diff spelled out, for it may change between git versions;
//   - --no-renames: a reader without the old file can still read it all.
var formatFlags = []string{
	"format-patch", "--zero-commit", "--no-signature", "--no-numbered", "--no-stat",
	"--full-index", "--binary", "--no-renames", "--unified=3", "--inter-hunk-context=0",
	"--diff-algorithm=myers", "--indent-heuristic", "--src-prefix=a/", "--dst-prefix=b/",
	"--no-ext-diff", "--no-textconv", "--no-color", "--no-attach", "--no-thread",
	"--no-cover-letter", "--no-notes", "--no-base", "--no-to", "--no-cc",
	"--subject-prefix=PATCH", "--suffix=.patch", "--filename-max-length=64", "--quiet",
}

// formatPatch writes commit as patch number n into dir, without the paths in exclude, and
// returns the name of the file: empty where nothing is left of the commit.
func (r repo) formatPatch(ctx context.Context, commit, dir string, n int, exclude []string) (string, error) {
	args := append([]string(nil), formatFlags...)
	args = append(args, "--output-directory="+dir, "--start-number="+strconv.Itoa(n), commit+"^.."+commit, "--", ":(top)")
	for _, p := range exclude {
		args = append(args, ":(top,exclude,literal)"+p)
	}
	if err := r.git(ctx, args...); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("%04d-*.patch", n)))
	if err != nil || len(files) == 0 {
		return "", err
	}
	return filepath.Base(files[0]), nil
}

// patchNames lists the patch files in dir.
func patchNames(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files, err
}

// sameContent tells whether the file at path holds data.
func sameContent(path string, data []byte) bool {
	old, err := os.ReadFile(path)
	return err == nil && string(old) == string(data)
}
