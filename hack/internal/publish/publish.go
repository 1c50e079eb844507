// Package publish puts images into a registry, and reads them from there. Everything that an image
// consists of, and what is attached to it, is uploaded before the tags: an interrupted upload
// publishes nothing.
package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Row says what was done with one image, or would be.
type Row struct {
	Reference string `json:"reference"`
	Platforms string `json:"platforms"`
	Digest    string `json:"digest"` // of the index
	Bytes     int64  `json:"bytes"`  // compressed
	State     string `json:"state"`
}

// States of a Row.
const (
	Pushed = "pushed"
	Exists = "exists"
	DryRun = "not pushed"
)

// ErrTagExists is wrapped by the error about a tag of something else.
var ErrTagExists = errors.New("the tag exists with another digest")

// Registry is a place in a registry.
type Registry struct {
	Path       string      // HOST/PATH
	Key        *attest.Key // signs, unless nil
	Provenance attest.Provenance
	Force      bool // moves tags that exist
}

// options are those of every request: docker's credentials.
func options(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// Index returns the index of i.
func (i Image) Index() (v1.ImageIndex, error) {
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

// entry is an image with what is computed of it.
type entry struct {
	Image
	tag   name.Tag
	index v1.ImageIndex
	row   Row
}

// entries returns images as they are published, without asking the registry.
func (r Registry) entries(images []Image) ([]entry, error) {
	var all []entry
	for _, i := range images {
		e := entry{Image: i}
		var err error
		if e.tag, err = r.tag(i.Name, i.Tag); err != nil {
			return nil, err
		}
		if e.index, err = i.Index(); err != nil {
			return nil, err
		}
		hash, err := e.index.Digest()
		if err != nil {
			return nil, err
		}
		e.row = Row{e.tag.String(), strings.Join(slices.Sorted(maps.Keys(i.Platforms)), ","), hash.String(), 0, DryRun}
		for _, img := range i.Platforms {
			m, err := img.Manifest()
			if err != nil {
				return nil, err
			}
			for _, layer := range append(m.Layers, m.Config) {
				e.row.Bytes += layer.Size
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// Validate returns an error if r.Path is no place in a registry.
func (r Registry) Validate() error {
	_, err := r.tag("x", "x")
	return err
}

func (r Registry) tag(repository, tag string) (name.Tag, error) {
	t, err := name.NewTag(r.Path+"/"+repository+":"+tag, name.StrictValidation)
	if err != nil || strings.Contains(r.Path, "://") || strings.HasSuffix(r.Path, "/") {
		return t, errors.Join(fmt.Errorf("want HOST/PATH, such as registry.example.com/kubernetes, not %q", r.Path), err)
	}
	return t, nil
}

// Plan returns what Push would publish, without asking the registry.
func (r Registry) Plan(images []Image) ([]Row, error) {
	entries, err := r.entries(images)
	var rows []Row
	for _, e := range entries {
		rows = append(rows, e.row)
	}
	return rows, err
}

// Push publishes images, with a bill of materials and a statement of their provenance attached.
// Only what the registry lacks is sent. The error wraps ErrTagExists if a tag is of another
// digest, unless r.Force is set; nothing is sent then.
func (r Registry) Push(ctx context.Context, images []Image, step *progress.Step) ([]Row, error) {
	entries, err := r.entries(images)
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		step.Now("looking for %s", e.tag)
		head, err := remote.Head(e.tag, options(ctx)...)
		var answer *transport.Error
		switch {
		case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound: // it is new
		case err != nil:
			return nil, Explain(ctx, e.tag, err)
		case head.Digest.String() == e.row.Digest:
			entries[i].row.State = Exists
		case !r.Force:
			return nil, remedy.New(fmt.Errorf("%s: %w, %s, not %s", e.tag, ErrTagExists, head.Digest, e.row.Digest), "--force moves it")
		}
	}
	pusher, err := remote.NewPusher(options(ctx)...)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		step.Now("uploading %s", e.tag)
		if err := r.upload(ctx, pusher, e); err != nil {
			return nil, Explain(ctx, e.tag, err)
		}
	}
	var rows []Row
	for _, e := range entries {
		if e.row.State != Exists {
			e.row.State = Pushed
			if err := pusher.Push(ctx, e.tag, e.index); err != nil {
				return nil, Explain(ctx, e.tag, err)
			}
		}
		rows = append(rows, e.row)
	}
	return rows, nil
}

// upload uploads e and what is attached to it, but not the tag.
func (r Registry) upload(ctx context.Context, pusher *remote.Pusher, e entry) error {
	for _, img := range e.Platforms {
		if err := r.attach(ctx, pusher, e, img, func() ([]byte, error) { return attest.BOM(img, e.Name, e.Tag, e.Debian) }); err != nil {
			return err
		}
	}
	return r.attach(ctx, pusher, e, e.index, nil)
}

// attach uploads an image, or an index, by its digest, with a statement of its provenance and the
// result of bom, unless the registry has it with a statement of this key already.
func (r Registry) attach(ctx context.Context, pusher *remote.Pusher, e entry, what partial.Describable, bom func() ([]byte, error)) error {
	d, err := partial.Descriptor(what)
	if err != nil {
		return err
	}
	ref := e.tag.Digest(d.Digest.String())
	if _, err := attest.Check(ctx, ref, r.Key, options(ctx)...); err == nil {
		if _, err := remote.Head(ref, options(ctx)...); err == nil {
			return nil
		}
	}
	if err := pusher.Push(ctx, ref, what.(remote.Taggable)); err != nil {
		return err
	}
	attach := func(data []byte, mediaType string) error {
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
	if bom != nil {
		data, err := bom()
		if err != nil {
			return err
		}
		if err := attach(data, attest.SPDXType); err != nil {
			return err
		}
	}
	// Last, because its presence says that the rest is there.
	envelope, err := attest.Envelope(ctx, r.Key, e.tag.Repository.Name(), d.Digest, r.Provenance)
	if err != nil {
		return err
	}
	return attach(envelope, attest.EnvelopeType)
}

// Explain adds what to do to an error about ref's registry.
func Explain(ctx context.Context, ref name.Reference, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = fmt.Errorf("%s: %w", ref, err)
	host := ref.Context().RegistryStr()
	var answer *transport.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return remedy.New(err, "its certificate is of an authority that this host does not know: install the authority's certificate, or name its file in SSL_CERT_FILE")
	case errors.As(err, &answer):
		switch answer.StatusCode {
		case http.StatusUnauthorized:
			return remedy.New(err, "log in with `docker login "+host+"`")
		case http.StatusForbidden:
			return remedy.New(err, "the account of `docker login "+host+"` may not do this in "+ref.Context().RepositoryStr())
		case http.StatusNotFound:
			return remedy.New(err, "check the name; some registries want a repository to be created first")
		case http.StatusTooManyRequests:
			return remedy.New(err, "the registry limits requests: wait, and run the same command again; what it has is not sent again")
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return remedy.New(err, "the connection was cut: run the same command again; layers that have arrived are not sent again")
	case errors.Is(err, syscall.ECONNREFUSED):
		return remedy.New(err, "nothing answers at "+host+": check the name and the port")
	}
	return err
}
