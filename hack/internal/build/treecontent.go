package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/gitrepo"
)

// TreeContent returns git's tree hash of the files in dir as they are now, including
// uncommitted edits and new files. It writes nothing into the tree: it uses a copy of the
// index, and writes the objects of edited files to the folder scratch.
func TreeContent(ctx context.Context, dir, scratch string) (string, error) {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(scratch, "index-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	repo, index := gitrepo.Repo{Dir: dir}, filepath.Join(tmp, "index")
	if err := copyFile(repo.Path("index"), index); err != nil {
		return "", fmt.Errorf("reading the tree %s; run `podenv tree` to put it together: %w", dir, err)
	}
	objects := filepath.Join(tmp, "objects")
	if err := os.Mkdir(objects, 0o755); err != nil {
		return "", err
	}
	env := []string{
		"GIT_INDEX_FILE=" + index,
		"GIT_OBJECT_DIRECTORY=" + objects,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + repo.Path("objects"),
	}
	if err := repo.Cmd(ctx, "add", "--all").Env(env...).Run(); err != nil {
		return "", err
	}
	return repo.Cmd(ctx, "write-tree").Env(env...).Output()
}

// copyFile copies a file with its modification time, from which git knows which files were
// changed since the index was written.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
