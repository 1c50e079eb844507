package series

import (
	"bytes"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// Boilerplate is the license header of the Go files in ModuleFolders and NewFileFolders. In a tree
// each of them has it, as the project asks for; this repository has it once. The zero value is no
// header.
type Boilerplate struct{ text []byte }

// BoilerplateFile is the path of the license header of new files. The series of one project share it.
func (s Series) BoilerplateFile() string {
	return filepath.Join(filepath.Dir(s.Dir), "boilerplate.go.txt")
}

// noYear is the first minor of Kubernetes whose check of license headers (hack/boilerplate) refuses
// years after 2025. Older ones ask for a year.
const noYear = "v1.35"

var copyrightYear = regexp.MustCompile(`(Copyright) \d{4}`)

// Boilerplate reads the header of the series' new files, as its release asks for it. Without a file
// of it there is none.
func (s Series) Boilerplate() (Boilerplate, error) {
	text, err := os.ReadFile(s.BoilerplateFile())
	if errors.Is(err, os.ErrNotExist) {
		return Boilerplate{}, nil
	}
	if err != nil {
		return Boilerplate{}, fmt.Errorf("reading the license header of new files: %w", err)
	}
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return Boilerplate{}, fmt.Errorf("%s is empty: restore it with git", s.BoilerplateFile())
	}
	if !s.IsTekton() && semver.Compare(s.Name, noYear) >= 0 {
		text = copyrightYear.ReplaceAll(text, []byte("$1"))
	}
	return Boilerplate{append(text, "\n\n"...)}, nil
}

// Add returns the file at path as a tree has it. A file that is not Go, or has a license header
// already, stays as it is.
func (b Boilerplate) Add(path string, content []byte) []byte {
	if len(b.text) == 0 || !strings.HasSuffix(path, ".go") || isLicensed(content) {
		return content
	}
	constraint := buildConstraint.Find(content)
	return slices.Concat(constraint, b.text, content[len(constraint):])
}

// Cut returns the file at path of a tree as it stands in this repository. A file without the
// header where Add puts it stays as it is.
func (b Boilerplate) Cut(path string, content []byte) []byte {
	constraint := buildConstraint.Find(content)
	if rest, ok := bytes.CutPrefix(content[len(constraint):], b.text); ok {
		if here := slices.Concat(constraint, rest); bytes.Equal(b.Add(path, here), content) {
			return here
		}
	}
	return content
}

// buildConstraint is what stands before the header: gofmt moves it in front of a comment that
// /* starts.
var buildConstraint = regexp.MustCompile(`^//go:build [^\n]*\n\n`)

// IsInverse reports whether Add gives back what Cut was given. It does not for a Go file without
// any license header.
func (b Boilerplate) IsInverse(path string, content []byte) bool {
	return bytes.Equal(b.Add(path, b.Cut(path, content)), content)
}

// licenseLine is a line of a comment with which a license header starts, or that only one has.
var licenseLine = regexp.MustCompile(`(?m)^(?://|/\*)?[ \t*]*(?:Copyright\b|SPDX-License-Identifier:|Licensed under\b)`)

// isLicensed reports whether a comment before the package clause of a Go file is a license header.
func isLicensed(content []byte) bool {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(content)), content, nil, scanner.ScanComments)
	for {
		_, kind, text := s.Scan()
		if kind != token.COMMENT {
			return false
		}
		if licenseLine.MatchString(text) {
			return true
		}
	}
}
