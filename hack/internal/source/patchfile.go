package source

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"podenv.dev/hack/internal/series"
)

// patchFile is one patch of a series.
type patchFile struct {
	path    string
	content []byte
	hash    string
	files   []*gitdiff.File
	header  *gitdiff.PatchHeader
}

func patchHash(content []byte) string { return sum(newHash("patch", string(content))) }

func (p patchFile) name() string { return filepath.Base(p.path) }

// readPatches reads the patches of s in the order in which they apply.
func readPatches(s series.Series) ([]patchFile, error) {
	paths, err := s.Patches()
	if err != nil {
		return nil, err
	}
	patches := make([]patchFile, len(paths))
	for i, path := range paths {
		if patches[i], err = readPatch(path); err != nil {
			return nil, fmt.Errorf("%s of series %s cannot be read as a patch: %w; restore it with git, or write it anew from the tree with `podenv patches`", filepath.Base(path), s.Name, err)
		}
	}
	return patches, nil
}

// mboxFrom is the line with which git format-patch starts a mail.
var mboxFrom = regexp.MustCompile(`(?m)^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$`)

func readPatch(path string) (patchFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return patchFile{}, err
	}
	// `git am` tells which mail it stopped at by number: one mail a file keeps
	// that the number of the file.
	if n := len(mboxFrom.FindAll(data, -1)); n != 1 {
		return patchFile{}, fmt.Errorf("it holds %d mails of git format-patch, not one", n)
	}
	files, preamble, err := gitdiff.Parse(bytes.NewReader(data))
	if err != nil {
		return patchFile{}, err
	}
	header, err := gitdiff.ParsePatchHeader(preamble)
	if err != nil {
		return patchFile{}, err
	}
	if len(files) == 0 {
		return patchFile{}, fmt.Errorf("it changes no file")
	}
	return patchFile{path: path, content: data, hash: patchHash(data), files: files, header: header}, nil
}
