// Package testutil has helpers for tests.
package testutil

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// CheckError fails the test unless err contains want. If want is empty, err must be nil.
func CheckError(t testing.TB, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case want != "" && err == nil:
		t.Errorf("no error, want one with %q", want)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("error %q, want one with %q", err, want)
	}
}

// WriteFile writes text to a file, and creates its directory. A script is executable.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
