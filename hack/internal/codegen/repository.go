package codegen

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"podenv.dev/hack/internal/gitrepo"
)

// repository is the git repository of a tree.
type repository struct {
	gitrepo.Repo
	base string // commit of the release
}

// released returns the release's content of files, without those that it does not have.
func (r *repository) released(ctx context.Context, files []string) (map[string][]byte, error) {
	if len(files) == 0 {
		return nil, nil
	}
	var names strings.Builder
	for _, file := range files {
		fmt.Fprintf(&names, "%s:%s\n", r.base, file)
	}
	batch, err := r.Cmd(ctx, "cat-file", "--batch").Stdin(strings.NewReader(names.String())).Output()
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
		// Output trims the newlines at the end, which belong to the last file.
		if missing := size - len(batch); missing > 0 {
			batch += strings.Repeat("\n", missing)
		}
		contents[file] = []byte(batch[:size])
		batch = strings.TrimPrefix(batch[size:], "\n")
	}
	return contents, nil
}
