package build

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// File is one entry of an image: a directory (Mode has fs.ModeDir), a symbolic link
// (Link is set) or a regular file, whose content is Data or, if Source is set, that of
// the file of this machine. Everything belongs to root and is dated 1970, so that
// equal content makes equal images.
type File struct {
	Path   string      // absolute path inside the image
	Mode   fs.FileMode // permissions, with fs.ModeSetuid, fs.ModeSetgid and fs.ModeSticky; those of a link are ignored
	Source string
	Data   []byte
	Link   string // target of a symbolic link
}

// layer is a gzipped tar of an image's files, held in memory.
type layer struct {
	compressed     []byte
	digest, diffID v1.Hash
}

// newLayer packs files, sorted by path and with the parent directories that they need.
func newLayer(files []File) (*layer, error) {
	entries, err := withParents(files)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	compressed, plain := sha256.New(), sha256.New()
	// Speed matters more than size: these images go to nodes on this very machine.
	zw, err := gzip.NewWriterLevel(io.MultiWriter(&out, compressed), gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	tw := tar.NewWriter(io.MultiWriter(zw, plain))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := writeEntry(tw, name, entries[name]); err != nil {
			return nil, fmt.Errorf("packing /%s: %w", name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return nil, err
	}
	if err := zw.Close(); err != nil {
		return nil, err
	}
	return &layer{compressed: out.Bytes(), digest: sum(compressed), diffID: sum(plain)}, nil
}

// withParents returns files by their path in the tar, which has no leading slash.
func withParents(files []File) (map[string]File, error) {
	entries := make(map[string]File, len(files))
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return nil, fmt.Errorf("image file %q: want a clean absolute path", f.Path)
		}
		name := f.Path[1:]
		if _, twice := entries[name]; twice {
			return nil, fmt.Errorf("image file %s: given twice", f.Path)
		}
		entries[name] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path[1:]); dir != "."; dir = path.Dir(dir) {
			if parent, ok := entries[dir]; !ok {
				entries[dir] = File{Path: "/" + dir, Mode: fs.ModeDir | 0o755}
			} else if !parent.Mode.IsDir() {
				return nil, fmt.Errorf("image file %s: its parent /%s is not a directory", f.Path, dir)
			}
		}
	}
	return entries, nil
}

func writeEntry(tw *tar.Writer, name string, f File) error {
	hdr := &tar.Header{Name: name, Mode: tarMode(f.Mode)}
	switch {
	case f.Link != "":
		hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, f.Link, 0o777
		return tw.WriteHeader(hdr)
	case f.Mode.IsDir():
		hdr.Typeflag, hdr.Name = tar.TypeDir, strings.TrimSuffix(name, "/")+"/"
		return tw.WriteHeader(hdr)
	}
	hdr.Typeflag = tar.TypeReg
	if f.Source == "" {
		hdr.Size = int64(len(f.Data))
		if err := tw.WriteHeader(hdr); err != nil {
			return err
		}
		_, err := tw.Write(f.Data)
		return err
	}
	return writeSource(tw, hdr, f.Source)
}

func writeSource(tw *tar.Writer, hdr *tar.Header, source string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", source)
	}
	hdr.Size = info.Size()
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	_, err = io.Copy(tw, in)
	return err
}

// tarMode is mode in the bits of chmod(2).
func tarMode(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

func sum(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

// Digest, DiffID, Compressed, Uncompressed, Size and MediaType make layer a v1.Layer.
func (l *layer) Digest() (v1.Hash, error) { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error) { return l.diffID, nil }
func (l *layer) Compressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(l.compressed)), nil
}
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	return gzip.NewReader(bytes.NewReader(l.compressed))
}
func (l *layer) Size() (int64, error)                { return int64(len(l.compressed)), nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }
