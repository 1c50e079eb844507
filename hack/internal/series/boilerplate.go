package series

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

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
