package debian

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/run"
)

// Files returns what the package deb would install, in the package's order. Paths are those
// of Debian's merged /usr: /usr/bin/x, never /bin/x.
func Files(ctx context.Context, deb string) ([]image.File, error) {
	// dpkg-deb knows each compression that Debian uses.
	out, err := run.Command(ctx, "dpkg-deb", "--fsys-tarfile", deb).Output()
	if err != nil {
		return nil, err
	}
	files, err := readTar(strings.NewReader(out))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", deb, err)
	}
	return files, nil
}

func readTar(r io.Reader) ([]image.File, error) {
	var files []image.File
	tr := tar.NewReader(r)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		f := image.File{Path: merged(hdr.Name), Mode: hdr.FileInfo().Mode(), Link: hdr.Linkname}
		switch hdr.Typeflag {
		case tar.TypeReg:
			if f.Data, err = io.ReadAll(tr); err != nil {
				return nil, err
			}
		case tar.TypeLink:
			if f, err = hardLink(files, f); err != nil {
				return nil, err
			}
		case tar.TypeDir, tar.TypeSymlink:
		default:
			return nil, fmt.Errorf("%s: unexpected kind of file %q", hdr.Name, hdr.Typeflag)
		}
		if f.Path != "/" {
			files = append(files, f)
		}
	}
}

// hardLink returns f with the content of the earlier file that it links to.
func hardLink(files []image.File, f image.File) (image.File, error) {
	target := merged(f.Link)
	for _, other := range files {
		if other.Path == target && other.Mode.IsRegular() {
			other.Path = f.Path
			return other, nil
		}
	}
	return image.File{}, fmt.Errorf("%s: hard link to %s, which does not come before it", f.Path, f.Link)
}

// merged returns the path of a tar's name on a system with merged /usr.
func merged(name string) string {
	p := path.Join("/", name)
	top, _, _ := strings.Cut(p[1:], "/")
	switch top {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		return "/usr" + p
	}
	return p
}
