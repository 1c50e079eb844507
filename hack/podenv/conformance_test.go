package main

import (
	"errors"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/conformance"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/lockfile"
)

// The second of two calls would run specs on the cluster of the first, and then delete it.
func TestConformanceLeavesTheClusterOfAnotherCallAlone(t *testing.T) {
	a := &app{series: "v1.33", name: "conformance", layout: layout.Layout{Root: t.TempDir()}}
	unlock, err := lockfile.TryLock(filepath.Join(a.layout.Output(), "locks", "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := a.conformance(t.Context(), nil, &conformance.Options{Focus: "other"}, "defaults"); !errors.Is(err, lockfile.ErrHeld) {
		t.Errorf("error %v", err)
	}
}
