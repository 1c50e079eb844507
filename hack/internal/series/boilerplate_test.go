package series

import (
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
)

const projectHeader = "/*\nCopyright 2026 The Authors.\n\nLicensed under the Apache License.\n*/\n"

// headerOf reads the header of the series called name.
func headerOf(t *testing.T, l layout.Layout, name string) Boilerplate {
	t.Helper()
	s, err := Load(l, name)
	if err != nil {
		t.Fatal(err)
	}
	return s.Header
}

func TestALicenseHeaderIsAddedAndCut(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":       pin133,
		"patches/boilerplate.go.txt": projectHeader,
	})
	header := headerOf(t, l, "v1.33")
	const start = projectHeader + "\n"
	for name, c := range map[string]struct {
		path, here, tree string
	}{
		"a package":                         {"a.go", "package a\n", start + "package a\n"},
		"a package with documentation":      {"a.go", "// Package a is.\npackage a\n", start + "// Package a is.\npackage a\n"},
		"a build constraint":                {"a.go", "//go:build linux\n\npackage a\n", "//go:build linux\n\n" + start + "package a\n"},
		"an empty file":                     {"a.go", "", start},
		"words about licenses":              {"a.go", "// Package a checks a license and its Copyright.\npackage a\n", start + "// Package a checks a license and its Copyright.\npackage a\n"},
		"a header after the package clause": {"a.go", "package a\n\n// Copyright\n", start + "package a\n\n// Copyright\n"},
		"the header in the code":            {"a.go", "package a\n\nconst h = `" + start + "`\n", start + "package a\n\nconst h = `" + start + "`\n"},
		"no Go":                             {"a.sh", "#!/bin/sh\n", "#!/bin/sh\n"},
		"the header on what is no Go":       {"a.txt", start, start},
		"another year":                      {"a.go", "/*\nCopyright 2019 The Authors.\n*/\n\npackage a\n", "/*\nCopyright 2019 The Authors.\n*/\n\npackage a\n"},
		"another license":                   {"a.go", "//go:build linux\n\n// SPDX-License-Identifier: MIT\n\npackage a\n", "//go:build linux\n\n// SPDX-License-Identifier: MIT\n\npackage a\n"},
		"the header without a blank line":   {"a.go", projectHeader + "package a\n", projectHeader + "package a\n"},
		"the header before a constraint":    {"a.go", start + "//go:build linux\n\npackage a\n", start + "//go:build linux\n\npackage a\n"},
		"a constraint behind a comment":     {"a.go", "// a\n\n//go:build linux\n\npackage a\n", start + "// a\n\n//go:build linux\n\npackage a\n"},
		"two headers":                       {"a.go", start + start + "package a\n", start + start + "package a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(header.Add(c.path, []byte(c.here))); got != c.tree {
				t.Errorf("in a tree it is %q, want %q", got, c.tree)
			}
			if got := string(header.Cut(c.path, []byte(c.tree))); got != c.here {
				t.Errorf("from a tree comes %q, want %q", got, c.here)
			}
			if !header.IsReversible(c.path, []byte(c.tree)) {
				t.Error("it is said not to come back as it is")
			}
		})
	}
	if bare := []byte("package a\n"); header.IsReversible("a.go", bare) || string(header.Cut("a.go", bare)) != string(bare) {
		t.Error("a file of a tree without a header is said to come back without one")
	}
}

func TestAProjectWithoutAHeader(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":              pin133,
		"patches/tekton/v1.10/go.mod":       pinTekton,
		"patches/tekton/boilerplate.go.txt": projectHeader,
	})
	for name, want := range map[string]string{"v1.33": "package a\n", "tekton-v1.10": projectHeader + "\npackage a\n"} {
		header := headerOf(t, l, name)
		if got := header.Add("a.go", []byte("package a\n")); string(got) != want || !header.IsReversible("a.go", got) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAnEmptyHeaderIsRefused(t *testing.T) {
	l := repository(t, map[string]string{"patches/v1.33/go.mod": pin133, "patches/boilerplate.go.txt": "\n"})
	if _, err := Load(l, "v1.33"); err == nil || !strings.Contains(err.Error(), "patches/boilerplate.go.txt is empty") {
		t.Errorf("error is %v", err)
	}
}

func TestARepeatedHeaderIsFound(t *testing.T) {
	l := repository(t, map[string]string{
		"patches/v1.33/go.mod":       pin133,
		"patches/v1.33/0001-a.patch": "Subject: a\n\nNew-File: a.go\nNew-File: b.go\nNew-File: c.go\n\n",
		"patches/boilerplate.go.txt": projectHeader,
		"patches/new/a.go":           projectHeader + "\npackage a\n",
		"patches/new/b.go":           "package b\n",
		"patches/new/c.go":           "/*\nCopyright 2019 Others.\n*/\n\npackage c\n",
		"patches/v1.33/new/b.go":     projectHeader + "\npackage b // v1.33\n",
		"pkg/d/d.go":                 projectHeader + "\npackage d\n",
	})
	err := CheckNewFiles(l)
	for _, want := range []string{"patches/new/a.go begins with the license header", "patches/v1.33/new/b.go begins with the license header", "pkg/d/d.go begins with the license header"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in the error %v", want, err)
		}
	}
	if err != nil && (strings.Contains(err.Error(), "patches/new/b.go begins") || strings.Contains(err.Error(), "c.go begins")) {
		t.Errorf("too much is found: %v", err)
	}
}

func TestNewFilesOfThisRepositoryGetALicenseHeader(t *testing.T) {
	l, err := layout.Find(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, authors := range map[string]string{
		"v1.29": "2026 The Kubernetes Authors.", "v1.34": "2026 The Kubernetes Authors.", "v1.35": "The Kubernetes Authors.",
		"v1.37": "The Kubernetes Authors.", "tekton-v1.10": "2026 The Tekton Authors",
	} {
		header := headerOf(t, l, name)
		got := string(header.Add("a.go", []byte("package a\n")))
		if !strings.HasPrefix(got, "/*\nCopyright "+authors+"\n") || !strings.HasSuffix(got, "\n*/\n\npackage a\n") {
			t.Errorf("in a tree of %s a new file is\n%s", name, got)
		}
	}
}
