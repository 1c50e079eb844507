package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/source"
)

// stamp is the version that a component prints with --version. It depends on the release, on
// the number of patches and on whether the tree has edits, but not on the edits: otherwise
// every edit would relink all components.
type stamp struct {
	version   string // v1.33.13+podenv.5, or v1.33.13+podenv.5.dirty
	commit    string // the tree's commit of the release
	treeState string // "clean" for the unmodified release, else "dirty"
	date      string // the release commit's, RFC 3339
}

// Version is the version of components built from t without edits: the release, and for a
// patched tree the number of patches as build metadata.
func Version(t *source.Tree) string {
	if t.Stock {
		return t.Series.Release
	}
	return fmt.Sprintf("%s+podenv.%d", t.Series.Release, len(t.Series.Patches()))
}

// ImageTag is version as an image tag, which cannot contain a plus sign.
func ImageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// newStamp returns the stamp of the tree t, whose files have git's tree hash content.
func newStamp(ctx context.Context, t *source.Tree, content string) (stamp, error) {
	version := Version(t)
	unedited, err := t.Contents(ctx)
	if err != nil {
		return stamp{}, err
	}
	edited := !slices.Contains(unedited, content)
	switch {
	case edited && t.Stock:
		version += "+dirty"
	case edited:
		version += ".dirty"
	}
	commit, date, err := t.Release(ctx)
	if err != nil {
		return stamp{}, err
	}
	state := "dirty"
	if t.Stock && !edited {
		state = "clean"
	}
	return stamp{version: version, commit: commit, treeState: state, date: date.Format(time.RFC3339)}, nil
}

// linkerFlags strips the binaries and stamps them as Kubernetes' own build does, in both
// packages that have a version.
func (s stamp) linkerFlags() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(s.version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/client-go/pkg/version", "k8s.io/component-base/version"} {
		for _, v := range [][2]string{
			{"gitVersion", s.version}, {"gitMajor", major}, {"gitMinor", minor},
			{"gitCommit", s.commit}, {"gitTreeState", s.treeState}, {"buildDate", s.date},
		} {
			flags = append(flags, "-X", pkg+"."+v[0]+"="+v[1])
		}
	}
	return strings.Join(flags, " ")
}

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
	// From the time of the index git knows which files were changed since it was written.
	if err := run.Command(ctx, "cp", "--preserve=timestamps", repo.Path("index"), index).Run(); err != nil {
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
