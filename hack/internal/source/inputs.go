package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

// inputs is all that a tree is made of, and a hash of each part.
type inputs struct {
	release  string // hash of the pins, and of how a release's commit is made of them
	newFiles []newFile
	newHash  string
	patches  []patchFile
}

// readInputs reads what the tree is made of; of a stock tree that is the release alone.
func readInputs(l layout.Layout, s series.Series, stock bool) (*inputs, error) {
	in := &inputs{}
	h := newHash("release", pristineVersion, s.Release)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			return nil, fmt.Errorf("reading the pins of series %s: %w", s.Name, err)
		}
		add(h, string(data))
	}
	in.release = sum(h)
	if stock {
		return in, nil
	}
	var err error
	if in.newFiles, err = readNewFiles(l); err != nil {
		return nil, err
	}
	h = newHash("new files")
	for _, f := range in.newFiles {
		add(h, f.path, f.mode, string(f.content))
	}
	in.newHash = sum(h)
	in.patches, err = readPatches(s)
	return in, err
}

// files are all new files that go into the tree.
func (in *inputs) files() map[string]string {
	hashes := map[string]string{}
	for _, f := range in.newFiles {
		hashes[f.path] = f.hash()
	}
	for _, p := range in.patches {
		for _, f := range p.newFiles {
			hashes[f.path] = f.hash()
		}
	}
	return hashes
}

// storedHashes are those of the patch files.
func (in *inputs) storedHashes() []string {
	hashes := make([]string, len(in.patches))
	for i, p := range in.patches {
		hashes[i] = patchHash(p.stored)
	}
	return hashes
}

// key is the hash of all inputs but the generators.
func (in *inputs) key() string {
	return sum(newHash(append([]string{"tree 2", in.release, in.newHash}, in.hashes()...)...))
}

// hashes are those of the patches.
func (in *inputs) hashes() []string {
	hashes := make([]string, len(in.patches))
	for i, p := range in.patches {
		hashes[i] = p.hash
	}
	return hashes
}

// newHash starts a hash over strings, each written with its length, so that no two
// lists of strings give the same hash.
func newHash(parts ...string) hash.Hash {
	h := sha256.New()
	add(h, parts...)
	return h
}

func add(h hash.Hash, parts ...string) {
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		io.WriteString(h, p) //nolint:errcheck // a hash never fails
	}
}

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
