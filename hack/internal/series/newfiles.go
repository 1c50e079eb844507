package series

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"podenv.dev/hack/internal/layout"
)

// newFileTrailer is the trailer of a patch's message that names a new file which the patch
// adds. The diff of the patch does not contain the file.
const newFileTrailer = "New-File: "

// NewFileFolders are the folders of the new files in packages of the release, each at its
// upstream path: own has the versions for this series only, common those for all series.
func (s Series) NewFileFolders() (own, common string) {
	return filepath.Join(s.Dir, "new"), filepath.Join(filepath.Dir(s.Dir), "new")
}

// NewFileFolder is the folder that the series takes the new file at path from: the first that has
// it of NewFileFolders and, for packages in ModuleFolders, the root of this repository. If none
// has the file, it is the folder that has other files of its package, and else the common one.
func (s Series) NewFileFolder(file string) string {
	own, common := s.NewFileFolders()
	if exists(own, file) {
		return own
	}
	root := filepath.Dir(filepath.Dir(s.Dir))
	for p := file; p != "." && !s.IsTekton() && !exists(common, p); p = path.Dir(p) {
		if in, _, _ := strings.Cut(p, "/"); slices.Contains(ModuleFolders, in) && hasFiles(filepath.Join(root, filepath.FromSlash(p))) {
			return root
		}
	}
	return common
}

func exists(dir, file string) bool {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(file)))
	return err == nil
}

// hasFiles reports whether path is a file, or a folder with files in itself.
func hasFiles(path string) bool {
	entries, err := os.ReadDir(path)
	if err != nil {
		_, err = os.Lstat(path)
		return err == nil
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() })
}

// SplitMessage removes the trailers that name new files from a patch. It returns the patch
// without them, and the paths that they name.
func SplitMessage(patch []byte) (rest []byte, newFiles []string) {
	end := messageEnd(patch)
	last := bytes.LastIndex(bytes.TrimRight(patch[:end], "\n"), []byte("\n\n"))
	if last < 0 {
		return patch, nil
	}
	start := last + len("\n\n")
	for line := range strings.Lines(string(patch[start:end])) {
		path, ok := strings.CutPrefix(line, newFileTrailer)
		switch {
		case ok:
			newFiles = append(newFiles, strings.TrimSpace(path))
		case strings.TrimSpace(line) != "":
			return patch, nil
		}
	}
	if len(newFiles) == 0 {
		return patch, nil
	}
	return slices.Concat(patch[:start], patch[end:]), newFiles
}

// JoinMessage is the inverse of SplitMessage.
func JoinMessage(patch []byte, newFiles []string) []byte {
	if len(newFiles) == 0 {
		return patch
	}
	end := messageEnd(patch)
	trailers := newFileTrailer + strings.Join(newFiles, "\n"+newFileTrailer) + "\n\n"
	return slices.Concat(patch[:end], []byte(trailers), patch[end:])
}

// HasTrailer reports whether a commit message names a new file. Only those of patch files may.
func HasTrailer(message string) bool {
	return strings.HasPrefix(message, newFileTrailer) || strings.Contains(message, "\n"+newFileTrailer)
}

// messageEnd is the offset at which the message of a patch ends: at the diff, at the line "---"
// before it, or at the end of a patch that changes no existing file.
func messageEnd(patch []byte) int {
	end := 0
	for line := range bytes.Lines(patch) {
		if bytes.HasPrefix(line, []byte("diff --git ")) || string(bytes.TrimRight(line, "\r\n")) == "---" {
			return end
		}
		end += len(line)
	}
	return end
}

// ModuleFolders are the folders of this module with packages of our own: new files of Kubernetes
// that compile here, at the same path.
var ModuleFolders = []string{"pkg", "staging"}

// CheckNewFiles finds new files that no patch adds, versions for one series that equal the
// common one, and files that contain the license header.
func CheckNewFiles(l layout.Layout) error {
	return errors.Join(
		checkNewFiles(l, Names(l), append([]string{"patches/new"}, ModuleFolders...)...),
		checkNewFiles(l, names(l, tektonPrefix), "patches/tekton/new"))
}

// checkNewFiles is CheckNewFiles for the series of one project; common are their shared folders.
func checkNewFiles(l layout.Layout, names []string, common ...string) error {
	var found []error
	var last Boilerplate      // the header that the common files were last checked for
	used := map[string]bool{} // the full paths of the files that a patch adds
	for _, name := range names {
		s, err := Load(l, name)
		if err != nil {
			return err
		}
		own := Folder(name) + "/new"
		found = append(found, checkHeaders(l, s.Header, own))
		if s.Header != last {
			last = s.Header
			found = append(found, checkHeaders(l, last, common...))
		}
		added, err := s.NewFiles()
		if err != nil {
			return err
		}
		ownDir, commonDir := s.NewFileFolders()
		for _, file := range added {
			used[filepath.Join(s.NewFileFolder(file), file)] = true
		}
		for _, file := range filesIn(ownDir) {
			if !slices.Contains(added, file) {
				found = append(found, fmt.Errorf("no patch of series %s adds %s/%s: delete it, or name it with a line %q in the message of a patch", name, own, file, newFileTrailer+file))
			} else if sameFile(filepath.Join(ownDir, file), filepath.Join(commonDir, file)) {
				found = append(found, fmt.Errorf("%s/%s is the same as %s/%s: delete it", own, file, common[0], file))
			}
		}
	}
	for _, folder := range common {
		for _, file := range filesIn(filepath.Join(l.Root, folder)) {
			if full := path.Join(folder, file); !used[filepath.Join(l.Root, full)] {
				found = append(found, fmt.Errorf("no patch of any series adds %s: delete it, or name it with a line %q in the message of a patch", full, newFileTrailer+strings.TrimPrefix(full, common[0]+"/")))
			}
		}
	}
	return errors.Join(found...)
}

// checkHeaders finds files in folders of this repository that contain the license header.
func checkHeaders(l layout.Layout, header Boilerplate, folders ...string) error {
	var found []error
	for _, folder := range folders {
		for _, file := range filesIn(filepath.Join(l.Root, folder)) {
			content, err := os.ReadFile(filepath.Join(l.Root, folder, file))
			if err == nil && !bytes.Equal(header.Cut(file, content), content) {
				err = fmt.Errorf("%s/%s begins with the license header, which it gets in each tree: delete the header", folder, file)
			}
			found = append(found, err)
		}
	}
	return errors.Join(found...)
}

// NewFiles lists the paths of the new files that the patches of s add, in patch order.
func (s Series) NewFiles() ([]string, error) {
	var paths []string
	for _, patch := range s.Patches() {
		data, err := os.ReadFile(patch)
		if err != nil {
			return nil, err
		}
		_, files := SplitMessage(data)
		paths = append(paths, files...)
	}
	return paths, nil
}

// filesIn lists the files below dir as slash-separated paths; none if dir does not exist.
func filesIn(dir string) []string {
	var paths []string
	fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error { //nolint:errcheck // a folder that cannot be read has no files
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

func sameFile(a, b string) bool {
	left, errA := os.ReadFile(a)
	right, errB := os.ReadFile(b)
	return errA == nil && errB == nil && bytes.Equal(left, right)
}
