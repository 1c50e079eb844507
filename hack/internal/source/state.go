package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/jsonout"
)

// state is the state of a tree, which assembly stores in the tree's repository.
type state struct {
	Key       string `json:"key,omitempty"`       // hash of all inputs of a finished tree
	Generated string `json:"generated,omitempty"` // key of the generated code, even if there is no commit of it
	// Busy is set while an assembly changes the tree. If none runs, one was interrupted.
	Busy    bool        `json:"busy,omitempty"`
	Steps   []stateStep `json:"steps"`             // the commits that assembly made, oldest first
	Written string      `json:"written,omitempty"` // the last commit that WritePatches wrote to the patches
	// Patches are the hashes of the patch files that the tree was last made from or written
	// to. WritePatches does not replace a file with another hash.
	Patches []string `json:"patches,omitempty"`
	// NewFiles maps the paths of new files to their hashes when the tree was last made from or
	// written to them. WritePatches does not replace a file with another hash.
	NewFiles map[string]string `json:"newFiles,omitempty"`
	// Conflict is the patch at which assembly stopped.
	Conflict *ConflictError `json:"conflict,omitempty"`
}

// stateStep is one commit and the hash of the input that it came from.
type stateStep struct {
	Kind   kind   `json:"kind"`
	Input  string `json:"input"`
	Commit string `json:"commit"`
}

// recordNewFile records that this repository and the tree have the same file at path; nil if neither has one.
func (s *state) recordNewFile(path string, f *newFile) {
	if f == nil {
		delete(s.NewFiles, path)
		return
	}
	if s.NewFiles == nil {
		s.NewFiles = map[string]string{}
	}
	s.NewFiles[path] = f.hash()
}

// last is the latest commit that assembly made.
func (s *state) last() string { return s.Steps[len(s.Steps)-1].Commit }

// applied is the number of patches that are commits of the tree.
func (s *state) applied() int {
	n := 0
	for _, step := range s.Steps {
		if step.Kind == kindPatch {
			n++
		}
	}
	return n
}

// made reports whether assembly made commit.
func (s *state) made(commit string) bool {
	return slices.ContainsFunc(s.Steps, func(step stateStep) bool { return step.Commit == commit })
}

// known reports whether the content of commit is stored elsewhere, so that it can be dropped.
func (s *state) known(commit string) bool { return commit == s.Written || s.made(commit) }

// knownCommits lists the commits for which known holds.
func (s *state) knownCommits() []string {
	var ids []string
	for _, step := range s.Steps {
		ids = append(ids, step.Commit)
	}
	if s.Written != "" {
		ids = append(ids, s.Written)
	}
	return ids
}

func stateFile(tree string) string { return filepath.Join(tree, ".git", "podenv", "state.json") }

// readState returns os.ErrNotExist if tree is not a tree.
func readState(tree string) (*state, error) {
	var s state
	if err := readJSON(stateFile(tree), tree, &s); err != nil {
		return nil, err
	}
	if len(s.Steps) == 0 {
		return nil, damaged(stateFile(tree), tree, errors.New("it names no commit"))
	}
	if s.Conflict != nil {
		s.Conflict.Dir = tree
	}
	return &s, nil
}

func writeState(tree string, s *state) error { return jsonout.Save(stateFile(tree), s) }

// readJSON reads the file at path, which describes the repository dir, into v.
func readJSON(path, dir string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return damaged(path, dir, err)
	}
	return nil
}

func damaged(path, dir string, err error) error {
	return fmt.Errorf("%s is damaged (%w): save what you need from %s and delete it", path, err, dir)
}

// kind is the kind of a commit of a tree. It is a trailer of the message, where it survives a
// rebase; patches have none.
type kind string

const (
	kindRelease   kind = "release"
	kindPatch     kind = "patch"
	kindGenerated kind = "generated"
)

// markTrailer is the trailer that names the commit's kind.
const markTrailer = "Podenv-Commit: "

// message is the message of a commit that is not a patch.
func message(k kind, subject, body string) string {
	return fmt.Sprintf("%s\n\n%s\n\n%s%s\n", subject, body, markTrailer, k)
}

// kindOf reads a commit's kind from its message.
func kindOf(message string) kind {
	for line := range strings.Lines(message) {
		if k, ok := strings.CutPrefix(strings.TrimSpace(line), markTrailer); ok {
			return kind(k)
		}
	}
	return kindPatch
}
