package series

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

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

// Boilerplate is the license header of the Go files in ModuleFolders and NewFileFolders. The
// project requires it in every file, so in a tree each has it; this repository has it once. The
// zero value is no header.
type Boilerplate struct{ text string }

// BoilerplateFile is the path of the license header, which all series of a project share.
func (s Series) BoilerplateFile() string {
	return filepath.Join(filepath.Dir(s.Dir), "boilerplate.go.txt")
}

// noYearSince is the first minor of Kubernetes whose hack/boilerplate check refuses years after
// 2025. Older ones require a year.
const noYearSince = "v1.35"

var copyrightYear = regexp.MustCompile(`(Copyright) \d{4}`)

// readBoilerplate reads the license header in the form that the series' release requires. If
// BoilerplateFile does not exist, there is no header.
func (s Series) readBoilerplate() (Boilerplate, error) {
	data, err := os.ReadFile(s.BoilerplateFile())
	if errors.Is(err, os.ErrNotExist) {
		return Boilerplate{}, nil
	}
	if err != nil {
		return Boilerplate{}, fmt.Errorf("reading the license header of new files: %w", err)
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return Boilerplate{}, fmt.Errorf("%s is empty: restore it with git", s.BoilerplateFile())
	}
	if !s.IsTekton() && semver.Compare(s.Name, noYearSince) >= 0 {
		text = copyrightYear.ReplaceAllString(text, "$1")
	}
	return Boilerplate{text + "\n\n"}, nil
}

// Add returns the content of the file at path with the header, as a tree has it. A file that is
// not Go, or has a license header already, is not changed.
func (b Boilerplate) Add(path string, content []byte) []byte {
	if len(b.text) == 0 || !strings.HasSuffix(path, ".go") || isLicensed(content) {
		return content
	}
	constraint := buildConstraint.Find(content)
	return slices.Concat(constraint, []byte(b.text), content[len(constraint):])
}

// Cut returns the content of the file at path without the header, as this repository has it. A
// file without the header where Add puts it is not changed.
func (b Boilerplate) Cut(path string, content []byte) []byte {
	constraint := buildConstraint.Find(content)
	if rest, ok := bytes.CutPrefix(content[len(constraint):], []byte(b.text)); ok {
		if unlicensed := slices.Concat(constraint, rest); bytes.Equal(b.Add(path, unlicensed), content) {
			return unlicensed
		}
	}
	return content
}

// buildConstraint matches a build constraint, which stays before the header: gofmt moves it in
// front of a /* comment.
var buildConstraint = regexp.MustCompile(`^//go:build [^\n]*\n\n`)

// IsReversible reports whether Add restores content after Cut. It does not for a Go file without
// a license header.
func (b Boilerplate) IsReversible(path string, content []byte) bool {
	return bytes.Equal(b.Add(path, b.Cut(path, content)), content)
}

// licenseLine matches a line of a comment that is typical of a license header.
var licenseLine = regexp.MustCompile(`(?m)^(?://|/\*)?[ \t*]*(?:Copyright\b|SPDX-License-Identifier:|Licensed under\b)`)

var packageClause = regexp.MustCompile(`(?m)^package\b`)

// isLicensed reports whether a comment before the package clause of a Go file is a license header.
func isLicensed(content []byte) bool {
	if at := packageClause.FindIndex(content); at != nil {
		content = content[:at[0]]
	}
	return licenseLine.Match(content)
}
