package source

import (
	"fmt"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/digest"
	"podenv.dev/hack/internal/series"
)

// inputs are the inputs of a tree except the generators, with a hash of each part.
type inputs struct {
	release string // hash of the pins and of releaseRepoVersion
	patches []patchFile
}

// readInputs reads the inputs of a tree. The inputs of a stock tree are the release
// and the fixes of s.
func readInputs(s series.Series, stock bool) (*inputs, error) {
	in := &inputs{}
	parts := []string{"release", releaseRepoVersion, s.Release}
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(s.Pins, name))
		if err != nil {
			return nil, fmt.Errorf("reading the pins of series %s: %w", s.Name, err)
		}
		parts = append(parts, string(data))
	}
	in.release = digest.Of(parts...)
	if stock && s.Fixes == "" {
		return in, nil
	}
	var err error
	in.patches, err = readPatches(s)
	return in, err
}

// newFileHashes maps the paths of all new files of the tree to their hashes.
func (in *inputs) newFileHashes() map[string]string {
	hashes := map[string]string{}
	for _, p := range in.patches {
		for _, f := range p.newFiles {
			hashes[f.path] = f.hash()
		}
	}
	return hashes
}

// patchHashes returns the hashes of the stored patches.
func (in *inputs) patchHashes() []string {
	hashes := make([]string, len(in.patches))
	for i, p := range in.patches {
		hashes[i] = patchHash(p.stored)
	}
	return hashes
}

// key is the hash of all inputs.
func (in *inputs) key() string {
	parts := []string{"tree 3", in.release}
	for _, p := range in.patches {
		parts = append(parts, p.hash)
	}
	return digest.Of(parts...)
}
