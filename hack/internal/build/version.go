package build

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/source"
)

// stamp is what --version of a component prints. It depends on the release, on the number
// of patches and on whether the tree has edits, but not on which: if it changed with every
// edit, every edit would relink all components.
type stamp struct {
	version   string // v1.33.13+podenv.5, or v1.33.13+podenv.5.dirty
	commit    string // the tree's commit of the release
	treeState string // "clean" for exactly the release, else "dirty"
	date      string // the release commit's, RFC 3339
}

// Version is what the components built from t say they are if nobody has edited it: the
// release, and for a patched tree the number of patches as build metadata.
func Version(t *source.Tree) (string, error) {
	if t.Stock {
		return t.Series.Release, nil
	}
	patches, err := t.Series.Patches()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s+podenv.%d", t.Series.Release, len(patches)), nil
}

// ImageTag is version as an image's tag, which cannot hold a plus sign.
func ImageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

// newStamp is the stamp of the tree t with the content that git has the hash of.
func newStamp(ctx context.Context, t *source.Tree, content string) (stamp, error) {
	version, err := Version(t)
	if err != nil {
		return stamp{}, err
	}
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

// linkerFlags strips the binaries and stamps them as Kubernetes' own build does, in
// both packages that keep a version.
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
