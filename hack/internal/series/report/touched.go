package report

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// Touched counts what patches change in files that the release has: the cost of the next
// rebase. New files, and changes of those by later patches, cost nothing.
type Touched struct {
	Files   int `json:"files"`
	Added   int `json:"added"`   // lines
	Removed int `json:"removed"` // lines
}

// Lines is the number of lines that were added or removed.
func (t Touched) Lines() int { return t.Added + t.Removed }

func touched(patches []string) (Touched, error) {
	var t Touched
	existing, created := map[string]bool{}, map[string]bool{}
	for _, path := range patches {
		files, err := parsePatch(path)
		if err != nil {
			return Touched{}, fmt.Errorf("reading %s: %w", filepath.Base(path), err)
		}
		for _, f := range files {
			switch {
			case f.IsNew:
				created[f.NewName] = true
				continue
			case created[f.OldName]:
				continue
			}
			existing[f.OldName] = true
			for _, fragment := range f.TextFragments {
				t.Added += int(fragment.LinesAdded)
				t.Removed += int(fragment.LinesDeleted)
			}
		}
	}
	t.Files = len(existing)
	return t, nil
}

func parsePatch(path string) ([]*gitdiff.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, _, err := gitdiff.Parse(f)
	return files, err
}
