// Package publish puts images into a registry, and reads them from there. Everything that an image consists of,
// and what is attached to it, is uploaded before the tags: an interrupted upload publishes nothing.
package publish

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/remedy"
)

// Image is published as an index with an image for each platform.
type Image struct {
	Name, Tag   string              // "kube-apiserver", "v1.33.13_podenv.26"
	Platforms   map[string]v1.Image // by platform: "linux/amd64"
	Annotations map[string]string
	Debian      []string // the packages in it, as name=version
}

// Row says what was done with one image.
type Row struct {
	Reference string `json:"reference"`
	Platforms string `json:"platforms"`
	Bytes     int64  `json:"bytes"` // compressed
	State     string `json:"state"` // "pushed", "exists" or "not pushed"
	Digest    string `json:"digest"`
}

// ErrTagExists is wrapped by the error about a tag of something else.
var ErrTagExists = errors.New("the tag exists with another digest")

// Registry is a place in a registry, with how to publish there.
type Registry struct {
	Path       string     // HOST/PATH
	Key        attest.Key // signs, unless nil
	Provenance attest.Provenance
	Force      bool // moves tags that exist
	DryRun     bool // asks and sends nothing
}

// options are those of every request: docker's credentials.
func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// index returns the index of i.
func (i Image) index() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range slices.Sorted(maps.Keys(i.Platforms)) {
		p, err := v1.ParsePlatform(platform)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.Platforms[platform], Descriptor: v1.Descriptor{Platform: p}})
	}
	return mutate.Annotations(index, i.Annotations).(v1.ImageIndex), nil
}

// Tag returns the reference in r of the image name:tag.
func (r Registry) Tag(image, tag string) (name.Tag, error) {
	t, err := name.NewTag(r.Path+"/"+image+":"+tag, name.StrictValidation)
	if err != nil || strings.Contains(r.Path, "://") || strings.HasSuffix(r.Path, "/") {
		return t, errors.Join(fmt.Errorf("want HOST/PATH, such as registry.example.com/kubernetes, not %q", r.Path), err)
	}
	return t, nil
}

// withContext ends the requests of what takes no context.
type withContext struct{ context.Context }

func (c withContext) RoundTrip(r *http.Request) (*http.Response, error) {
	return remote.DefaultTransport.RoundTrip(r.WithContext(c))
}

// Check returns an error if the registry does not take that image. It publishes nothing.
func (r Registry) Check(ctx context.Context, image string) error {
	ref, err := name.NewTag(r.Path + "/" + image)
	if err != nil || r.DryRun {
		return err
	}
	return explain(ctx, ref, remote.CheckPushPermission(ref, authn.DefaultKeychain, transport.NewRetry(withContext{ctx})))
}

// entry is an image with what is computed of it.
type entry struct {
	Image
	tag   name.Tag
	index v1.ImageIndex
}

func (r Registry) entry(i Image) (e entry, row Row, err error) {
	e = entry{Image: i}
	if e.tag, err = r.Tag(i.Name, i.Tag); err != nil {
		return e, row, err
	}
	if e.index, err = i.index(); err != nil {
		return e, row, err
	}
	hash, err := e.index.Digest()
	row = Row{e.tag.String(), strings.Join(slices.Sorted(maps.Keys(i.Platforms)), ","), 0, "not pushed", hash.String()}
	for _, img := range i.Platforms {
		m, errImage := img.Manifest()
		if err = errors.Join(err, errImage); err != nil {
			break
		}
		for _, layer := range append(m.Layers, m.Config) {
			row.Bytes += layer.Size
		}
	}
	return e, row, err
}

// Push publishes images, with a bill of materials and a statement of their provenance attached.
// Only what the registry lacks is sent. The error wraps ErrTagExists if a tag is of another
// digest and r.Force is not set; nothing is sent then.
func (r Registry) Push(ctx context.Context, images []Image, step *progress.Step) ([]Row, error) {
	entries, rows := make([]entry, len(images)), make([]Row, len(images))
	var err error
	for i, image := range images {
		if entries[i], rows[i], err = r.entry(image); err != nil {
			return nil, err
		}
		if r.DryRun {
			continue
		}
		tag := entries[i].tag
		step.Now("looking for %s", tag)
		head, err := remote.Head(tag, options(ctx)...)
		var answer *transport.Error
		switch {
		case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound: // it is new
		case err != nil:
			return nil, explain(ctx, tag, err)
		case head.Digest.String() == rows[i].Digest:
			rows[i].State = "exists"
		case !r.Force:
			return nil, remedy.New(fmt.Errorf("%s: %w, %s, not %s", tag, ErrTagExists, head.Digest, rows[i].Digest), "--force moves it")
		}
	}
	if r.DryRun {
		return rows, nil
	}
	pusher, err := remote.NewPusher(options(ctx)...)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		step.Now("uploading %s", e.tag)
		for _, img := range e.Platforms {
			if err := r.upload(ctx, pusher, e, img); err != nil {
				return nil, explain(ctx, e.tag, err)
			}
		}
		if err := r.upload(ctx, pusher, e, e.index); err != nil {
			return nil, explain(ctx, e.tag, err)
		}
	}
	for i, e := range entries {
		if rows[i].State == "exists" {
			continue
		}
		if err := pusher.Push(ctx, e.tag, e.index); err != nil {
			return nil, explain(ctx, e.tag, err)
		}
		rows[i].State = "pushed"
	}
	return rows, nil
}

// upload uploads an image or an index by its digest, with a statement of its provenance, and for
// an image with a bill of materials, unless the registry has it with a statement of this key. A
// statement without a commit, from which nobody can build it, does not do if there is a commit now.
func (r Registry) upload(ctx context.Context, pusher *remote.Pusher, e entry, what partial.Describable) error {
	d, err := partial.Descriptor(what)
	if err != nil {
		return err
	}
	ref := e.tag.Digest(d.Digest.String())
	if have, err := attest.Check(ctx, ref, r.Key, options(ctx)...); err == nil && (have.Commit != "" || r.Provenance.Commit == "") {
		if _, err := remote.Head(ref, options(ctx)...); err == nil {
			return nil
		}
	}
	if err := pusher.Push(ctx, ref, what.(remote.Taggable)); err != nil {
		return err
	}
	attach := func(data []byte, mediaType string, err error) error {
		if err != nil {
			return err
		}
		a, err := attest.Attachment(data, mediaType, *d)
		if err != nil {
			return err
		}
		hash, err := a.Digest()
		if err != nil {
			return err
		}
		return pusher.Push(ctx, e.tag.Digest(hash.String()), a)
	}
	if img, ok := what.(v1.Image); ok {
		bom, err := attest.BOM(img, e.Name, strings.ReplaceAll(e.Tag, "_", "+"), e.Debian)
		if err := attach(bom, attest.SPDXType, err); err != nil {
			return err
		}
	}
	// Last, because its presence says that the rest is there.
	envelope, err := attest.Envelope(ctx, r.Key, e.tag.Repository.Name(), d.Digest, r.Provenance)
	return attach(envelope, attest.EnvelopeType, err)
}

// answers are what to do about the answer of a registry.
var answers = map[int]string{
	http.StatusUnauthorized:    "log in with `docker login HOST`",
	http.StatusForbidden:       "the account of `docker login HOST` may not do this there",
	http.StatusNotFound:        "check the name; some registries want a repository to be created first",
	http.StatusTooManyRequests: "the registry limits requests: wait, and run the same command again; what it has is not sent again",
}

// explain adds what to do to an error about ref's registry, unless it is nil.
func explain(ctx context.Context, ref name.Reference, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	host, remedies := ref.Context().RegistryStr(), ""
	var answer *transport.Error
	switch {
	case errors.As(err, new(x509.UnknownAuthorityError)):
		remedies = "this host does not know the authority of its certificate: install that authority's certificate, or name its file in SSL_CERT_FILE"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		remedies = "check the name, and this host's clock; else the registry needs another certificate"
	case errors.Is(err, http.ErrSchemeMismatch):
		remedies = "a registry without TLS needs to be localhost, a name in .local or a private address"
	case errors.As(err, &answer):
		remedies = strings.Replace(answers[answer.StatusCode], "HOST", host, 1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		remedies = "the connection was cut: run the same command again; layers that have arrived are not sent again"
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, new(*net.DNSError)):
		remedies = "nothing answers at " + host + ": check the name and the port"
	}
	if err = fmt.Errorf("%s: %w", ref, err); remedies == "" {
		return err
	}
	return remedy.New(err, remedies)
}

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
		return nil, fmt.Errorf("%s is one image: name the tag or the digest of its index, which has the images of all platforms: %w", ref, err)
	}
	m, err := images.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, child := range m.Manifests {
		// Of two images for a platform, a check could read the one that is not run.
		if child.Platform == nil || p.Platforms[child.Platform.String()] != nil {
			return nil, fmt.Errorf("%s was not published by podenv: its index has an image without a platform, or two for one", ref)
		}
		if p.Platforms[child.Platform.String()], err = images.Image(child.Digest); err != nil {
			return nil, explain(ctx, parsed, err)
		}
	}
	return p, nil
}

// Read reads all layers and configurations. Its error says which does not have the content of its digest.
func (p *Published) Read(ctx context.Context, step *progress.Step) error {
	for platform, img := range p.Platforms {
		layers, err := img.Layers()
		if err == nil {
			_, err = img.RawConfigFile() // it checks the digest, too
		}
		if err != nil {
			return explain(ctx, p.Ref, fmt.Errorf("%s: %w", platform, err))
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

// Difference returns where again, another build, first differs from p; it is empty if all is equal.
func (p *Published) Difference(again Image) (string, error) {
	index, err := again.index()
	if err != nil {
		return "", err
	}
	hash, err := index.Digest()
	if err == nil && hash.String() == p.Ref.DigestStr() {
		return "", nil
	}
	diff, errImages := Difference(p.Platforms, again.Platforms)
	return cmp.Or(diff, "the index, and no file in its images"), errors.Join(err, errImages)
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
