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
	"podenv.dev/hack/internal/remedy"
)

// Published is an image in a registry.
type Published struct {
	Ref        name.Digest
	Platforms  map[string]v1.Image // nothing of the layers has been read
	Provenance *attest.Provenance
}

// Find returns the image ref, a tag or a digest. Its provenance must be signed with key, unless
// that is nil. The error wraps attest.ErrNone or attest.ErrSignature if it is not.
func Find(ctx context.Context, ref string, key *attest.Key) (*Published, error) {
	parsed, err := name.ParseReference(ref, name.StrictValidation)
	if err != nil {
		return nil, fmt.Errorf("want an image as HOST/PATH/NAME:TAG: %w", err)
	}
	desc, err := remote.Get(parsed, options(ctx)...)
	if err != nil {
		return nil, Explain(ctx, parsed, err)
	}
	p := &Published{Ref: parsed.Context().Digest(desc.Digest.String()), Platforms: map[string]v1.Image{}}
	if p.Provenance, err = attest.Check(ctx, p.Ref, key, options(ctx)...); err != nil {
		if errors.Is(err, attest.ErrNone) {
			err = remedy.New(err, "`podenv publish` attaches a statement to what it publishes: was "+ref+" published by it?")
		}
		return nil, Explain(ctx, parsed, err)
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
			return nil, Explain(ctx, parsed, err)
		}
	}
	return p, nil
}

// Read reads all layers, and returns an error if their content does not have the digests that the
// index leads to.
func (p *Published) Read(ctx context.Context, step *progress.Step) error {
	for _, platform := range slices.Sorted(maps.Keys(p.Platforms)) {
		layers, err := p.Platforms[platform].Layers()
		if err != nil {
			return Explain(ctx, p.Ref, err)
		}
		for i, layer := range layers {
			step.Now("%s: reading layer %d of %d", platform, i+1, len(layers))
			r, err := layer.Compressed()
			if err == nil {
				_, err = io.Copy(io.Discard, r) // it checks the digest
				err = errors.Join(err, r.Close())
			}
			if err != nil {
				return Explain(ctx, p.Ref, fmt.Errorf("%s, layer %d: %w", platform, i+1, err))
			}
		}
	}
	return nil
}

// Difference returns where what was built again first differs from p; it is empty if all is equal.
func (p *Published) Difference(built Image) (string, error) {
	diff, err := Difference(Image{Platforms: p.Platforms}, built)
	if diff != "" || err != nil {
		return diff, err
	}
	index, err := built.Index()
	if err != nil {
		return "", err
	}
	if hash, err := index.Digest(); err != nil || hash.String() != p.Ref.DigestStr() {
		return "the index", err
	}
	return "", nil
}

// Difference returns where the platforms of two images first differ; it is empty if they do not.
func Difference(a, b Image) (string, error) {
	for _, platform := range slices.Sorted(maps.Keys(a.Platforms)) {
		if b.Platforms[platform] == nil {
			return "", fmt.Errorf("%s was not built again", platform)
		}
		if diff, err := image.Difference(a.Platforms[platform], b.Platforms[platform]); diff != "" || err != nil {
			return platform + ", " + diff, err
		}
	}
	return "", nil
}
