package doctor

import (
	"os"
	"testing"

	"podenv.dev/hack/internal/layout"
)

var theRepository = layout.Layout{Root: "../../.."}

func TestExamineFindsEachThingOnceAndChangesNothing(t *testing.T) {
	// A machine without anything, so that no check depends on what this one has.
	commands(t, nil)
	l := layout.Layout{Root: t.TempDir()}
	findings := Examine(t.Context(), l)
	seen := map[string]bool{}
	for _, f := range findings {
		f.want(t, f.Status, f.Found, f.Remedy)
		if seen[f.Check] && f.Check != "disk" {
			t.Errorf("%s is examined twice", f.Check)
		}
		seen[f.Check] = true
	}
	for _, check := range []string{"container engine", "running nodes", "privileged containers", "capabilities", "cgroups", "disk", "memory",
		"go", "git", "make", "protoc", "mmdebstrap", "package installation", "inotify limits", "iptables"} {
		if !seen[check] {
			t.Errorf("%s is not examined", check)
		}
	}
	if !Failed(findings) {
		t.Error("a machine without git and Go is fit")
	}
	if left, err := os.ReadDir(l.Root); err != nil || len(left) > 0 {
		t.Errorf("files made: %v (%v)", left, err)
	}
}
