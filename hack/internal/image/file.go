package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"podenv.dev/hack/internal/digest"
)

// Epoch is the time of everything in an image, so that equal content gives equal images.
var Epoch = time.Unix(0, 0)

// File is one entry of an image: a directory (Mode has fs.ModeDir), a symbolic link
// (Link is set), or a regular file. The content of a regular file is that of the local file
// Source, or Data if Source is empty. Everything belongs to root.
type File struct {
	Path   string      // absolute path inside the image
	Mode   fs.FileMode // permissions, with fs.ModeSetuid, fs.ModeSetgid and fs.ModeSticky; those of a link are ignored
	Source string
	Data   []byte
	Link   string // target of a symbolic link
}

// WriteFiles writes files and their parent directories to tw, sorted by path. It leaves out
// parent directories in existing, which has paths without a leading slash.
func WriteFiles(tw *tar.Writer, files []File, existing map[string]bool) error {
	entries, err := withParents(files, existing)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := entries[name].write(tw, name); err != nil {
			return fmt.Errorf("packing /%s: %w", name, err)
		}
	}
	return nil
}

// WriteTar returns a function that writes the tar of files, without the parent directories existing.
func WriteTar(files []File, existing ...string) func(io.Writer) error {
	have := map[string]bool{}
	for _, dir := range existing {
		have[dir] = true
	}
	return func(w io.Writer) error {
		tw := tar.NewWriter(w)
		if err := WriteFiles(tw, files, have); err != nil {
			return err
		}
		return tw.Close()
	}
}

// Reader returns what write writes. After Close, write fails.
func Reader(write func(io.Writer) error) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(write(w)) }()
	return r
}

// withParents returns files and their parent directories by path in the tar, without a leading slash.
func withParents(files []File, existing map[string]bool) (map[string]File, error) {
	entries := make(map[string]File, len(files))
	for _, f := range files {
		if !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/" {
			return nil, fmt.Errorf("image file %q: want a clean absolute path", f.Path)
		}
		if _, twice := entries[f.Path[1:]]; twice {
			return nil, fmt.Errorf("image file %s: given twice", f.Path)
		}
		entries[f.Path[1:]] = f
	}
	for _, f := range files {
		for dir := path.Dir(f.Path[1:]); dir != "."; dir = path.Dir(dir) {
			if parent, ok := entries[dir]; ok && !parent.Mode.IsDir() {
				return nil, fmt.Errorf("image file %s: its parent /%s is not a directory", f.Path, dir)
			} else if !ok && !existing[dir] {
				entries[dir] = File{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	return entries, nil
}

func (f File) write(tw *tar.Writer, name string) error {
	hdr := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: chmodBits(f.Mode), Size: int64(len(f.Data)), ModTime: Epoch}
	var content io.Reader = bytes.NewReader(f.Data)
	switch {
	case f.Link != "":
		hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, f.Link, 0o777
	case f.Mode.IsDir():
		hdr.Typeflag, hdr.Name = tar.TypeDir, name+"/"
	case f.Source != "":
		source, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer source.Close()
		info, err := source.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", f.Source)
		}
		hdr.Size, content = info.Size(), source
	}
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	_, err := io.Copy(tw, content)
	return err
}

// chmodBits is mode as chmod(2) takes it.
func chmodBits(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return bits
}

// FilesKey hashes files and their content, in any order.
func FilesKey(files []File) (string, error) {
	var parts, sources []string
	byPath := func(a, b File) int { return strings.Compare(a.Path, b.Path) }
	for _, f := range slices.SortedStableFunc(slices.Values(files), byPath) {
		parts = append(parts, f.Path, f.Mode.String(), f.Link, string(f.Data))
		if f.Source != "" {
			sources = append(sources, f.Source)
		}
	}
	sums, err := digest.Files(sources...)
	return digest.Of(append(parts, sums...)...), err
}

// MinimalFiles are the files that a static program may expect: users, name service configuration and /tmp.
func MinimalFiles() []File {
	text := func(path, content string) File { return File{Path: path, Mode: 0o644, Data: []byte(content)} }
	return []File{
		text("/etc/passwd", "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"),
		text("/etc/group", "root:x:0:\nnogroup:x:65534:\n"),
		text("/etc/nsswitch.conf", "hosts: files dns\n"),
		{Path: "/tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}
