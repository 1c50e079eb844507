package pipeline

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"

	"podenv.dev/hack/internal/build"
	"podenv.dev/hack/internal/gitrepo"
	"podenv.dev/hack/internal/run"
	"podenv.dev/hack/internal/testimages"
)

// BuildSpecs builds the release's own end-to-end specs from the tree of r.
func (p *Pipeline) BuildSpecs(ctx context.Context, r *build.Result) (*build.Specs, error) {
	s, end := p.step("specs of the release")
	specs, err := build.BuildSpecs(ctx, r, s)
	return specs, end(err)
}

// Specs is BuildSpecs, and also returns a docker-archive of the images that the specs run.
func (p *Pipeline) Specs(ctx context.Context, r *build.Result) (*build.Specs, string, error) {
	specs, err := p.BuildSpecs(ctx, r)
	if err != nil {
		return nil, "", err
	}
	s, end := p.step("images of the specs")
	listed, err := run.Command(ctx, filepath.Join(specs.Dir, "e2e.test"), "--list-images").Output()
	if err != nil {
		return nil, "", end(err)
	}
	archive, err := testimages.ForSpecs(ctx, p.Layout, r.Tree.Dir, specs.Dir, specs.Key, imageRefs(ctx, r.Tree.Dir, listed), s)
	return specs, archive, end(err)
}

var imageRef = regexp.MustCompile(`(?m)^[a-z0-9.-]+(/[a-z0-9._-]+)+:[A-Za-z0-9._-]+$`)

// imageRefs returns the references in listed, and those that specs in the tree have in their text.
func imageRefs(ctx context.Context, tree, listed string) []string {
	// git grep fails if there is none.
	found, _ := gitrepo.Repo{Dir: tree}.Quiet(ctx, "grep", "-hoE", `registry\.k8s\.io/e2e-test-images/[a-z0-9-]+:[0-9][0-9.-]*`, "--", "test/e2e")
	refs := imageRef.FindAllString(listed+"\n"+found, -1)
	slices.Sort(refs)
	return slices.Compact(refs)
}
