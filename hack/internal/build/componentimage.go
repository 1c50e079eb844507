package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
)

// ComponentImage packs an executable of version, wherever it was built, into the image of
// a component, and returns the path of the docker-archive. It is kept by its content.
func ComponentImage(ctx context.Context, l layout.Layout, component, version, binary string, step *progress.Step) (string, error) {
	if !slices.Contains(ImageComponents, component) {
		return "", fmt.Errorf("%s does not run as a container", component)
	}
	a, err := newArtifact(binary, "", version)
	if err != nil {
		return "", err
	}
	b, err := baseOf(ctx, l, component, step)
	if err != nil {
		return "", err
	}
	ref := ImageName(component, version)
	out := filepath.Join(l.Cache("componentimages"), fmt.Sprintf("%s-%.16s.tar", component, keyOf(imageFormat, ref, a.SHA256, b.key)))
	if _, err := os.Stat(out); err == nil {
		step.Cached(ref + " as packed before")
		return out, nil
	}
	step.Now("packing %s", ref)
	return out, packComponent(ctx, component, ref, binary, b, out)
}
