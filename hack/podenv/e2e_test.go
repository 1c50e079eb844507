package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/series"
)

func TestAClusterGoesOnOneMinorAtATime(t *testing.T) {
	l := layout.Layout{Root: t.TempDir()}
	for _, minor := range []string{"v1.33", "v1.34", "v1.35", "v1.36"} {
		dir := filepath.Join(l.Root, "patches", minor)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		minor, asked, want string
	}{
		{"v1.33", "", "v1.34"},
		{"v1.33", "v1.34", "v1.34"},
		{"v1.33", "v1.34,v1.35,v1.36", "v1.34,v1.35,v1.36"},
		{"v1.36", "", ""},
		{"v1.33", "v1.35", "error"},
		{"v1.33", "v1.35,v1.34", "error"},
		{"v1.36", "v1.37", "error"},
	} {
		got, err := newerMinors(l, series.Series{Name: test.minor}, strings.FieldsFunc(test.asked, func(c rune) bool { return c == ',' }))
		if test.want == "error" {
			if !errors.As(err, new(*usageError)) {
				t.Errorf("%s --newer %s: %v, %v; want a usage error", test.minor, test.asked, got, err)
			}
			continue
		}
		if err != nil || strings.Join(got, ",") != test.want {
			t.Errorf("%s --newer %s: %v, %v; want %s", test.minor, test.asked, got, err, test.want)
		}
	}
}

func TestTheSuiteIsNotRunWithoutItsKubectl(t *testing.T) {
	l, s := layout.Layout{Root: t.TempDir()}, series.Series{Name: "v1.37"}
	if kubectl, err := kubectlOf(l, s, ""); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "SERIES") {
		t.Errorf("nothing is built: got %q, %v; want an error that says what to do", kubectl, err)
	}
	if kubectl, err := kubectlOf(l, s, filepath.Join(l.Root, "typo")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("--kubectl names no file: got %q, %v", kubectl, err)
	}
	own := filepath.Join(l.Build("v1.37"), "bin", "kubectl")
	other := filepath.Join(l.Root, "kubectl")
	if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o755), os.WriteFile(own, nil, 0o755), os.WriteFile(other, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	for requested, want := range map[string]string{"": own, other: other} {
		if kubectl, err := kubectlOf(l, s, requested); err != nil || kubectl != want {
			t.Errorf("--kubectl %q: got %q, %v; want %q", requested, kubectl, err, want)
		}
	}
}
