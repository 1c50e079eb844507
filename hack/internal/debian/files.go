package debian

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// Files returns the regular files and symbolic links of packages in the root file system. It returns those that
// dpkg lists, not those that installation scripts created. Paths are those of a merged /usr: /usr/bin/x, never
// /bin/x. The errors are those of RootFS, and one for a package that is not installed. On another architecture
// than this machine's, packages need to list their dependencies.
func Files(ctx context.Context, l layout.Layout, arch string, step *progress.Step, packages ...string) ([]image.File, error) {
	var root string
	var err error
	if arch == runtime.GOARCH {
		root, err = Nodes.RootFS(ctx, l, step)
	} else {
		root, err = extracted(ctx, l, arch, packages, step)
		packages = nil // it has no others
	}
	if err != nil {
		return nil, err
	}
	files, err := filesOf(root, packages)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", root, err)
	}
	return files, nil
}

// filesOf returns the files of packages in the tar root, or all if packages is nil.
func filesOf(root string, packages []string) ([]image.File, error) {
	listed, err := dpkgPaths(root, packages)
	if err != nil {
		return nil, err
	}
	var files []image.File
	err = eachEntry(root, func(name string, hdr *tar.Header, r io.Reader) (err error) {
		if packages == nil { // as in packages, where a root file system has merged paths
			name = mergedPath(name)
		} else if !listed[name] {
			return nil
		}
		f := image.File{Path: name, Mode: hdr.FileInfo().Mode(), Link: hdr.Linkname}
		switch hdr.Typeflag {
		case tar.TypeReg:
			f.Data, err = io.ReadAll(r)
		case tar.TypeLink:
			first := slices.IndexFunc(files, func(f image.File) bool { return f.Path == mergedPath(hdr.Linkname) })
			if first < 0 {
				return fmt.Errorf("%s: hard link to %s, which is not a file of these packages before it", name, hdr.Linkname)
			}
			f = files[first]
			f.Path = name
		case tar.TypeSymlink:
		case tar.TypeDir:
			return nil
		default:
			return fmt.Errorf("%s: unexpected kind of file %q", name, hdr.Typeflag)
		}
		files = append(files, f)
		return err
	})
	return files, err
}

// dpkgPaths returns the paths in dpkg's file lists. A package without a list is an error.
func dpkgPaths(root string, packages []string) (map[string]bool, error) {
	missing := slices.Clone(packages)
	paths := map[string]bool{}
	err := eachEntry(root, func(name string, _ *tar.Header, r io.Reader) error {
		dir, file := path.Split(name)
		pkg, isList := strings.CutSuffix(file, ".list")
		pkg, _, _ = strings.Cut(pkg, ":") // libc6:amd64
		i := slices.Index(missing, pkg)
		if dir != "/var/lib/dpkg/info/" || !isList || i < 0 {
			return nil
		}
		missing = slices.Delete(missing, i, i+1)
		list, err := io.ReadAll(r)
		for line := range strings.Lines(string(list)) {
			paths[mergedPath(strings.TrimSpace(line))] = true
		}
		return err
	})
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("not installed: %s", strings.Join(missing, ", "))
	}
	return paths, err
}

// eachEntry calls do with the absolute path, the header and the content of each entry of the tar file.
func eachEntry(file string, do func(name string, hdr *tar.Header, r io.Reader) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	tr := tar.NewReader(f)
	for {
		hdr, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(path.Join("/", hdr.Name), hdr, tr)
		}
		if err != nil {
			return err
		}
	}
}

// mergedPath returns the path of a package's file on a system with a merged /usr.
func mergedPath(file string) string {
	p := path.Join("/", file)
	top, _, _ := strings.Cut(p[1:], "/")
	switch top {
	case "bin", "sbin", "lib", "lib32", "lib64", "libx32":
		return "/usr" + p
	}
	return p
}
