package nodeimage

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// file is what a tar gets added. It has one of data, source and link.
type file struct {
	name   string // path without a leading slash
	mode   int64
	data   []byte
	source string // path of a file on this machine
	link   string // what a symbolic link points to
	dir    bool
}

// epoch is the time stamp of everything in the image, so that equal content makes
// equal images.
var epoch = time.Unix(0, 0)

// entryName is the path of an entry, without ./ before or / behind.
func entryName(hdr *tar.Header) string {
	return strings.TrimPrefix(path.Clean("/"+hdr.Name), "/")
}

// writeFiles adds files in the order of their names, after the directories that they
// are in and have does not.
func writeFiles(tw *tar.Writer, files []file, have map[string]bool) error {
	all := map[string]file{}
	for _, f := range files {
		for dir := path.Dir(f.name); dir != "."; dir = path.Dir(dir) {
			if !have[dir] {
				all[dir] = file{name: dir, mode: 0o755, dir: true}
			}
		}
	}
	for _, f := range files {
		all[f.name] = f
	}
	for _, f := range slices.SortedFunc(maps.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) }) {
		if err := f.write(tw); err != nil {
			return fmt.Errorf("adding %s: %w", f.name, err)
		}
	}
	return nil
}

func (f file) write(tw *tar.Writer) error {
	hdr := &tar.Header{Name: f.name, Mode: f.mode, ModTime: epoch, Format: tar.FormatPAX}
	switch {
	case f.dir:
		hdr.Typeflag, hdr.Name = tar.TypeDir, f.name+"/"
		return tw.WriteHeader(hdr)
	case f.link != "":
		hdr.Typeflag, hdr.Linkname, hdr.Mode = tar.TypeSymlink, f.link, 0o777
		return tw.WriteHeader(hdr)
	case f.source != "":
		return f.copy(tw, hdr)
	}
	hdr.Typeflag, hdr.Size = tar.TypeReg, int64(len(f.data))
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	_, err := tw.Write(f.data)
	return err
}

func (f file) copy(tw *tar.Writer, hdr *tar.Header) error {
	src, err := os.Open(f.source)
	if err != nil {
		return err
	}
	defer src.Close()
	info, err := src.Stat()
	if err != nil {
		return err
	}
	hdr.Typeflag, hdr.Size = tar.TypeReg, info.Size()
	if err := tw.WriteHeader(hdr); err != nil {
		return err
	}
	_, err = io.Copy(tw, src)
	return err
}
