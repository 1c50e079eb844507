package source

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"podenv.dev/hack/internal/series"
)

// rebaseState is what a rebase remembers, in its repository. The patches are kept there too:
// an edit of the series that they come from does not change a rebase that has begun.
type rebaseState struct {
	From string `json:"from"`
	// Carried is what patches/<minor>/carried will say.
	Carried []carriedLine `json:"carried"`
	Patches []rebaseStep  `json:"patches"`
	// Done is what became of the first of Patches.
	Done []Rebased `json:"done,omitempty"`
	// Head is the commit of the last patch that is done.
	Head string `json:"head"`
	// Stopped is set while the next patch waits for a person.
	Stopped bool `json:"stopped,omitempty"`
}

type carriedLine struct{ Title, Changes, Message string }

// rebaseStep is a patch that is applied.
type rebaseStep struct {
	Title string `json:"title"`
	// File is the patch's file in the repository, and Name what it is called.
	File string `json:"file"`
	Name string `json:"name"`
	// Series is where it comes from.
	Series string `json:"series"`
	// Message replaces the patch's own, unless it is empty.
	Message string `json:"message,omitempty"`
	// Before is the patch's file in the series that is written, from an earlier carry.
	Before string `json:"before,omitempty"`
	// Adapted says that a person adapted that one.
	Adapted bool `json:"adapted,omitempty"`
}

func rebaseFolder(dir string) string { return filepath.Join(dir, ".git", "podenv", "rebase") }

func newRebaseState(dir string, from series.Series, patches []planned, c carried, head string) (*rebaseState, error) {
	st := &rebaseState{From: from.Name, Head: head}
	for _, p := range c.patches {
		st.Carried = append(st.Carried, carriedLine{p.title, p.changes, p.message})
	}
	if err := os.MkdirAll(rebaseFolder(dir), 0o755); err != nil {
		return nil, err
	}
	for i, p := range patches {
		s := rebaseStep{
			Title: p.header.Title, Name: p.name(), Message: p.message, Before: p.before, Adapted: p.adapted,
			File: filepath.Join(rebaseFolder(dir), fmt.Sprintf("%04d.patch", i+1)),
		}
		if p.carry {
			s.Series = from.Name
		}
		if err := os.WriteFile(s.File, p.content, 0o644); err != nil {
			return nil, err
		}
		st.Patches = append(st.Patches, s)
	}
	return st, st.write(dir)
}

// carried is what the patches that the rebase carries were when it began.
func (st *rebaseState) carried() carried {
	c := carried{from: st.From}
	for _, line := range st.Carried {
		c.patches = append(c.patches, carriedPatch{line.Title, line.Changes, line.Message})
	}
	return c
}

func (st *rebaseState) write(dir string) error {
	data, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(rebaseFolder(dir), "state.json"), append(data, '\n'), 0o644)
}

// readRebaseState returns an error that is os.ErrNotExist where no rebase has begun.
func readRebaseState(dir string) (*rebaseState, error) {
	path := filepath.Join(rebaseFolder(dir), "state.json")
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var st rebaseState
	if err := json.Unmarshal(data, &st); err != nil {
		return nil, fmt.Errorf("%s is damaged (%w): save what you need from %s and delete it", path, err, dir)
	}
	return &st, nil
}
