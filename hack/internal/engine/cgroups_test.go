package engine

import (
	"os"
	"path/filepath"
	"testing"

	"podenv.dev/hack/internal/testutil"
)

func TestDelegate(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		moved string // what was written to init/cgroup.procs
		on    string // what was written to cgroup.subtree_control
	}{
		"moves the processes of a container's own cgroup": {
			files: map[string]string{"cgroup.type": "domain\n", "cgroup.controllers": "cpu memory pids\n", "cgroup.procs": "1\n20\n", "cgroup.subtree_control": "", "init/cgroup.procs": ""},
			moved: "1\n20\n", on: "+cpu\n+memory\n+pids\n",
		},
		"moves nothing where all controllers are passed on": {
			files: map[string]string{"cgroup.type": "domain\n", "cgroup.controllers": "cpu memory\n", "cgroup.procs": "1\n", "cgroup.subtree_control": "memory cpu\n", "init/cgroup.procs": ""},
			on:    "memory cpu\n",
		},
		"moves nothing out of the machine's root cgroup": {
			files: map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.procs": "1\n", "cgroup.subtree_control": "", "init/cgroup.procs": ""},
		},
		"does nothing with version 1": {
			files: map[string]string{"memory/cgroup.procs": "1\n", "cgroup.subtree_control": "", "init/cgroup.procs": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for file, text := range test.files {
				testutil.WriteFile(t, filepath.Join(root, file), text)
			}
			if err := delegate(root); err != nil {
				t.Fatal(err)
			}
			for file, want := range map[string]string{"init/cgroup.procs": test.moved, "cgroup.subtree_control": test.on} {
				if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != want {
					t.Errorf("%s has %q (%v), want %q", file, got, err, want)
				}
			}
		})
	}
	if err := delegate(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("without cgroups: %v", err)
	}
}
