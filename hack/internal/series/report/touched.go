package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/series"
)

// Touched counts the changes of patches in files of the release: the cost of the next rebase.
// New files, and changes of them by later patches, do not count.
type Touched struct {
	Files   int `json:"files"`
	Added   int `json:"added"`   // lines
	Removed int `json:"removed"` // lines
}

// Lines is the number of lines added or removed.
func (t Touched) Lines() int { return t.Added + t.Removed }

// NewFiles counts the new files that the patches of a series add, see series.NewFileFolders.
type NewFiles struct {
	Files int `json:"files"`
	Lines int `json:"lines"`
	// Own are the paths of those of which the series has its own version.
	Own []string `json:"own,omitempty"`
}

func (r *Report) countPatches(s series.Series) error {
	patches, err := s.Patches()
	if err != nil {
		return err
	}
	r.Patches = len(patches)
	existing, created := map[string]bool{}, map[string]bool{}
	for _, path := range patches {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r.PatchLines += bytes.Count(data, []byte("\n"))
		files, _, err := gitdiff.Parse(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("reading %s: %w", filepath.Base(path), err)
		}
		_, names := series.SplitMessage(data)
		if err := r.NewFiles.count(s, names); err != nil {
			return err
		}
		for _, name := range names {
			created[name] = true
		}
		for _, f := range files {
			switch {
			case f.IsNew:
				created[f.NewName] = true
			case !created[f.OldName]:
				existing[f.OldName] = true
				for _, fragment := range f.TextFragments {
					r.Touched.Added += int(fragment.LinesAdded)
					r.Touched.Removed += int(fragment.LinesDeleted)
				}
			}
		}
	}
	r.Touched.Files = len(existing)
	return nil
}

func (n *NewFiles) count(s series.Series, paths []string) error {
	own, _ := s.NewFileFolders()
	for _, path := range paths {
		folder := s.NewFileFolder(path)
		data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(path)))
		if err != nil {
			return fmt.Errorf("a patch of series %s adds a new file that does not exist: %w", s.Name, err)
		}
		n.Files++
		n.Lines += bytes.Count(data, []byte("\n"))
		if folder == own {
			n.Own = append(n.Own, path)
		}
	}
	return nil
}
