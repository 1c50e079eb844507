package verify

import (
	"context"
	"path/filepath"

	"podenv.dev/hack/internal/junit"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// UpstreamValidation holds the pods of test/corpus against the first upstream release
// that has the field: every pod that this branch accepts must be valid there too, so
// that a cluster can move on. That release is in a module of its own; the suite does the
// same on this branch's API server.
func UpstreamValidation(l layout.Layout) Check {
	return Check{Name: "accepted upstream", Group: "upstream", Run: func(ctx context.Context, step *progress.Step) ([]junit.Case, error) {
		return GoTest{
			Layout: l, Name: "accepted-upstream", Dir: filepath.Join(l.Root, "test", "upstream", "v1.34"),
			Env: []string{"GOWORK=off", "GOFLAGS=-mod=readonly"}, Flags: []string{"./..."},
		}.Run(ctx, step)
	}}
}
