package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestOpenBuildRefusesWhatIsNoBuild(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(whole)
	foreign[18], foreign[19] = 0xff, 0x00 // e_machine
	tests := map[string]struct {
		content []byte
		says    string
	}{
		"an empty file":                     {nil, "not a Linux executable"},
		"a script":                          {[]byte("#!/bin/sh\nexit 0\n"), "not a Linux executable"},
		"the beginning of an executable":    {whole[:100], "cut off after 100 bytes"},
		"an executable without its end":     {whole[:len(whole)/2], "cut off after"},
		"an executable for another machine": {foreign, "another machine"},
		"an executable of something else":   {whole, "--version"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubelet")
			if err := os.WriteFile(path, test.content, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err := OpenBuild(t.Context(), "kubelet", path)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "not a build of kubelet") {
				t.Errorf("error %v, want one with %q", err, test.says)
			}
		})
	}
	if _, err := OpenBuild(t.Context(), "kubelet", filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "stock:MINOR") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestAMissingBuildIsMadeFirst(t *testing.T) {
	if _, err := NewBuild("kubelet", filepath.Join(t.TempDir(), "none"), "", "v1.33.13"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "podenv build") {
		t.Errorf("NewBuild: %v", err)
	}
}
