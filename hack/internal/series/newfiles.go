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

// newFileTrailer starts a line of a patch's message that names a new file which the patch
// brings. The patch itself does not have the file.
const newFileTrailer = "New-File: "

// NewFileFolders are the folders of the new files that join packages of the release, each at
// its upstream path: the forms of this series alone, then those of all series.
func (s Series) NewFileFolders() (own, common string) {
	return filepath.Join(s.Dir, "new"), filepath.Join(filepath.Dir(s.Dir), "new")
}

// NewFileFolder is the one of NewFileFolders in which the series finds the new file at path.
// Where neither has the file, it is the common one.
func (s Series) NewFileFolder(path string) string {
	own, common := s.NewFileFolders()
	if _, err := os.Lstat(filepath.Join(own, filepath.FromSlash(path))); err == nil {
		return own
	}
	return common
}

// SplitMessage cuts the trailers that name new files out of a patch as the series has it. It
// returns the patch without them, and the paths that they name.
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
	at := messageEnd(patch)
	trailers := newFileTrailer + strings.Join(newFiles, "\n"+newFileTrailer) + "\n\n"
	return slices.Concat(patch[:at], []byte(trailers), patch[at:])
}

// HasTrailer reports whether a commit's message has a line that only a patch file may have.
func HasTrailer(message string) bool {
	return strings.HasPrefix(message, newFileTrailer) || strings.Contains(message, "\n"+newFileTrailer)
}

// messageEnd is where the message of a patch ends: at its diff, or at the line "---" before
// it, or at the end of a patch that changes no existing file.
func messageEnd(patch []byte) int {
	at := 0
	for line := range bytes.Lines(patch) {
		if bytes.HasPrefix(line, []byte("diff --git ")) || string(bytes.TrimRight(line, "\r\n")) == "---" {
			return at
		}
		at += len(line)
	}
	return at
}

// ModuleFolders are the folders of this module whose files go into every tree of Kubernetes, at
// the same path.
var ModuleFolders = []string{"pkg", "staging"}

// CheckNewFiles finds new files that no patch brings, forms of a series that are the same
// as the common one, and files that repeat the license header.
func CheckNewFiles(l layout.Layout) error {
	ofKubernetes, err := names(l, "")
	if err != nil {
		return err
	}
	ofTekton, err := names(l, tektonPrefix)
	if err != nil {
		return err
	}
	return errors.Join(checkModule(l, ofKubernetes), checkNewFiles(l, ofKubernetes), checkNewFiles(l, ofTekton))
}

// loadWithHeader loads a series and the license header of its new files.
func loadWithHeader(l layout.Layout, name string) (s Series, header Boilerplate, err error) {
	if s, err = Load(l, name); err == nil {
		header, err = s.Boilerplate()
	}
	return s, header, err
}

// checkModule finds files of this module that repeat the license header of one of the series.
func checkModule(l layout.Layout, names []string) error {
	var found []error
	var last Boilerplate
	for _, name := range names {
		_, header, err := loadWithHeader(l, name)
		if err != nil {
			return err
		}
		if bytes.Equal(header.text, last.text) {
			continue
		}
		last = header
		for _, folder := range ModuleFolders {
			dir := filepath.Join(l.Root, folder)
			for _, file := range filesIn(dir) {
				found = append(found, checkHeader(header, dir, folder, file))
			}
		}
	}
	return errors.Join(found...)
}

// checkNewFiles is CheckNewFiles for the series of one project, which share a folder.
func checkNewFiles(l layout.Layout, names []string) error {
	var found []error
	common := map[string]bool{} // the common forms, and whether a patch brings them
	folder := ""                // that they stand in, from the root of the repository
	for _, name := range names {
		s, header, err := loadWithHeader(l, name)
		if err != nil {
			return err
		}
		own, shared := s.NewFileFolders()
		folder = path.Join(path.Dir(Folder(name)), "new")
		if len(common) == 0 {
			for _, file := range filesIn(shared) {
				common[file] = false
				found = append(found, checkHeader(header, shared, folder, file))
			}
		}
		brought, err := s.NewFiles()
		if err != nil {
			return err
		}
		for _, file := range brought {
			if s.NewFileFolder(file) == shared {
				common[file] = true
			}
		}
		for _, file := range filesIn(own) {
			found = append(found, checkHeader(header, own, Folder(name)+"/new", file))
			if !slices.Contains(brought, file) {
				found = append(found, fmt.Errorf("no patch of series %s brings %s/new/%s: delete it, or name it with a line %q in the message of a patch", name, Folder(name), file, newFileTrailer+file))
			} else if sameFile(filepath.Join(own, file), filepath.Join(shared, file)) {
				found = append(found, fmt.Errorf("%s/new/%s is the same as %s/%s: delete it", Folder(name), file, folder, file))
			}
		}
	}
	for file, used := range common {
		if !used {
			found = append(found, fmt.Errorf("no patch of any series brings %s/%s: delete it, or name it with a line %q in the message of a patch", folder, file, newFileTrailer+file))
		}
	}
	return errors.Join(found...)
}

// checkHeader refuses a file in dir that repeats the license header. The name of dir in this
// repository is folder.
func checkHeader(header Boilerplate, dir, folder, file string) error {
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil || bytes.Equal(header.Cut(file, content), content) {
		return err
	}
	return fmt.Errorf("%s/%s begins with the license header, which it gets in each tree: delete the header", folder, file)
}

// NewFiles lists the paths of the new files that the patches of s bring, in their order.
func (s Series) NewFiles() ([]string, error) {
	patches, err := s.Patches()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, patch := range patches {
		data, err := os.ReadFile(patch)
		if err != nil {
			return nil, err
		}
		_, files := SplitMessage(data)
		paths = append(paths, files...)
	}
	return paths, nil
}

// filesIn lists the files below dir with forward slashes; none if there is no such folder.
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
