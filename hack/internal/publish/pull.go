package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
)

// Published is an image in a registry.
type Published struct {
	Ref        name.Digest
	Platforms  map[string]v1.Image // nothing of the layers has been read
	Provenance *attest.Provenance
}

// Find returns the image ref, a tag or a digest. Its provenance must be signed with key, unless
// that is nil. The error wraps attest.ErrSignature if it is not.
func Find(ctx context.Context, ref string, key attest.Key) (*Published, error) {
	parsed, err := name.ParseReference(ref, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("want an image as HOST/PATH/NAME:TAG: %w", err)
	}
	desc, err := remote.Get(parsed, options(ctx)...)
	if err != nil {
		return nil, explain(ctx, parsed, err)
	}
	p := &Published{Ref: parsed.Context().Digest(desc.Digest.String()), Platforms: map[string]v1.Image{}}
	if p.Provenance, err = attest.Check(ctx, p.Ref, key, options(ctx)...); err != nil {
		return nil, explain(ctx, parsed, err)
	}
	images, err := desc.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("%s was not published by podenv: %w", ref, err)
	}
	m, err := images.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, child := range m.Manifests {
		if child.Platform == nil {
			return nil, fmt.Errorf("%s was not published by podenv: its index has an image without a platform", ref)
		}
		if p.Platforms[child.Platform.String()], err = images.Image(child.Digest); err != nil {
			return nil, explain(ctx, parsed, err)
		}
	}
	return p, nil
}

// Read reads all layers. Its error says which does not have the content of its digest.
func (p *Published) Read(ctx context.Context, step *progress.Step) error {
	for platform, img := range p.Platforms {
		layers, err := img.Layers()
		if err != nil {
			return explain(ctx, p.Ref, err)
		}
		for i, layer := range layers {
			step.Now("%s: reading layer %d of %d", platform, i+1, len(layers))
			r, err := layer.Compressed()
			if err == nil {
				_, err = io.Copy(io.Discard, r) // it checks the digest
				err = errors.Join(err, r.Close())
			}
			if err != nil {
				return explain(ctx, p.Ref, fmt.Errorf("%s, layer %d: %w", platform, i+1, err))
			}
		}
	}
	return nil
}

// Difference returns where b, another build, first differs from a; it is empty if all is equal.
func Difference(a, b map[string]v1.Image) (string, error) {
	for _, platform := range slices.Sorted(maps.Keys(a)) {
		if b[platform] == nil {
			return platform + " was not built again", nil
		}
		if diff, err := image.Difference(a[platform], b[platform]); diff != "" || err != nil {
			return platform + ", " + diff, err
		}
	}
	return "", nil
}
