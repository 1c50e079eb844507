package codegen

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"podenv.dev/hack/internal/run"
)

// repository is the git repository of a tree.
type repository struct {
	dir  string
	base string // commit of the release
}

func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	return run.Command(ctx, "git", append([]string{"-C", r.dir}, args...)...).Output()
}

// changed lists the files that differ from the release, committed or not, sorted.
func (r *repository) changed(ctx context.Context) ([]string, error) {
	tracked, err := r.git(ctx, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", r.base, "--")
	if err != nil {
		return nil, err
	}
	untracked, err := r.git(ctx, "ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	paths := strings.FieldsFunc(tracked+"\x00"+untracked, func(c rune) bool { return c == 0 })
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// released returns those of files that the release has, as it has them.
func (r *repository) released(ctx context.Context, files []string) (map[string][]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	var names strings.Builder
	for _, file := range files {
		fmt.Fprintf(&names, "%s:%s\n", r.base, file)
	}
	batch, err := run.Command(ctx, "git", "-C", r.dir, "cat-file", "--batch").Stdin(strings.NewReader(names.String())).Output()
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{}
	for _, file := range files {
		var header string
		header, batch, _ = strings.Cut(batch, "\n")
		if strings.HasSuffix(header, " missing") {
			continue
		}
		size, err := strconv.Atoi(header[strings.LastIndexByte(header, ' ')+1:])
		if err != nil {
			return nil, fmt.Errorf("reading %s of the release: git cat-file printed %q", file, header)
		}
		// Output takes line ends off the end, which belong to the last file.
		if missing := size - len(batch); missing > 0 {
			batch += strings.Repeat("\n", missing)
		}
		contents[file] = []byte(batch[:size])
		batch = strings.TrimPrefix(batch[size:], "\n")
	}
	return contents, nil
}
