// Package attest makes, signs and checks what is attached to a published image: a bill of
// materials (SPDX) and a statement of its provenance (in-toto, with SLSA's predicate) in a DSSE
// envelope. The subject of the statement is the image's digest: its signature is the image's.
package attest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/secure-systems-lab/go-securesystemslib/signerverifier"
)

// Media types of what is attached.
const (
	EnvelopeType = "application/vnd.dsse.envelope.v1+json"
	SPDXType     = "application/spdx+json"
	payloadType  = "application/vnd.in-toto+json"
)

// provenanceType is the type of a statement's predicate: https://slsa.dev/spec/v1.0/provenance.
const provenanceType = "https://slsa.dev/provenance/v1"

// maxSize limits what is read of an attachment, in bytes: anybody may attach to an image.
const maxSize = 8 << 20

// ErrSignature is wrapped by the error of Check if no statement is signed with the key.
var ErrSignature = errors.New("not signed with this key")

// Provenance says what an image was built from.
type Provenance struct {
	Series  string `json:"series"`
	Release string `json:"release"`
	Version string `json:"version"`
	Stock   bool   `json:"stock,omitempty"`
	Go      string `json:"go"`
	// Commit is that of podenv's repository; empty if it had changes.
	Commit       string     `json:"commit,omitempty"`
	Dependencies []Resource `json:"-"`
}

// Resource is a resource descriptor of in-toto.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// statement is an in-toto statement v1 with the provenance v1 of SLSA.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string     `json:"buildType"`
			ExternalParameters   Provenance `json:"externalParameters"`
			ResolvedDependencies []Resource `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails map[string]any `json:"runDetails"`
	} `json:"predicate"`
}

// Key signs, if it is a private key, and verifies.
type Key = dsse.SignerVerifier

// LoadKey reads a key in PEM, as `openssl genpkey` and `openssl pkey -pubout` write it.
func LoadKey(file string) (Key, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	k, err := signerverifier.LoadKey(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is no key in PEM without a passphrase: %w; make one with `openssl genpkey -algorithm ed25519`", file, err)
	case k.KeyType == signerverifier.ED25519KeyType:
		return signerverifier.NewED25519SignerVerifierFromSSLibKey(k)
	case k.KeyType == signerverifier.ECDSAKeyType:
		return signerverifier.NewECDSASignerVerifierFromSSLibKey(k)
	}
	return signerverifier.NewRSAPSSSignerVerifierFromSSLibKey(k)
}

// LoadSigner is LoadKey for a key that signs.
func LoadSigner(ctx context.Context, file string) (Key, error) {
	key, err := LoadKey(file)
	if err != nil {
		return nil, err
	}
	if _, err := key.Sign(ctx, nil); err != nil {
		return nil, fmt.Errorf("%s cannot sign: %w; name the file of the private key", file, err)
	}
	return key, nil
}

// Envelope returns the statement that the image called name, with the digest hash, is of the
// provenance p. It is signed unless key is nil.
func Envelope(ctx context.Context, key Key, name string, hash v1.Hash, p Provenance) ([]byte, error) {
	s := statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       []Resource{{Name: name, Digest: map[string]string{hash.Algorithm: hash.Hex}}},
		PredicateType: provenanceType,
	}
	s.Predicate.BuildDefinition.BuildType = "https://podenv.dev/build/v1"
	s.Predicate.BuildDefinition.ExternalParameters = p
	s.Predicate.BuildDefinition.ResolvedDependencies = p.Dependencies
	s.Predicate.RunDetails = map[string]any{"builder": map[string]string{"id": "https://podenv.dev/podenv"}}
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	e := &dsse.Envelope{PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload), Signatures: []dsse.Signature{}}
	if key != nil {
		signer, err := dsse.NewEnvelopeSigner(key)
		if err != nil {
			return nil, err
		}
		if e, err = signer.SignPayload(ctx, payloadType, payload); err != nil {
			return nil, fmt.Errorf("signing the provenance: %w", err)
		}
	}
	return json.Marshal(e)
}

// open returns the provenance of the image with the digest hash from an envelope.
func open(ctx context.Context, data []byte, key Key, hash v1.Hash) (*Provenance, error) {
	var e dsse.Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, fmt.Errorf("its statement is no DSSE envelope: %w", err)
	}
	if key != nil {
		verifier, err := dsse.NewEnvelopeVerifier(key)
		if err != nil {
			return nil, err
		}
		if _, err := verifier.Verify(ctx, &e); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSignature, err)
		}
	}
	payload, err := e.DecodeB64Payload()
	var s statement
	if err = errors.Join(err, json.Unmarshal(payload, &s)); err != nil || e.PayloadType != payloadType {
		return nil, errors.Join(fmt.Errorf("its statement, of type %q, is not in-toto's", e.PayloadType), err)
	}
	if s.PredicateType != provenanceType {
		return nil, fmt.Errorf("its statement is of the type %q, not of provenance", s.PredicateType)
	}
	if !slices.ContainsFunc(s.Subject, func(s Resource) bool { return s.Digest[hash.Algorithm] == hash.Hex }) {
		return nil, fmt.Errorf("its statement is about another image, not about %s", hash)
	}
	return &s.Predicate.BuildDefinition.ExternalParameters, nil
}

// Attachment returns the artifact that attaches data to the image or index described by to.
func Attachment(data []byte, mediaType string, to v1.Descriptor) (v1.Image, error) {
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(data, types.MediaType(mediaType)))
	if err != nil {
		return nil, err
	}
	// The media type of the configuration is the type of the artifact.
	return mutate.Subject(mutate.ConfigMediaType(img, types.MediaType(mediaType)), to).(v1.Image), nil
}

// Attached returns what of mediaType is attached to ref in its registry. What cannot be read, which anybody may
// have attached, is an error only if nothing else is there.
func Attached(ref name.Digest, mediaType string, options ...remote.Option) ([][]byte, error) {
	index, err := remote.Referrers(ref, options...)
	if err != nil {
		return nil, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, d := range m.Manifests {
		if d.ArtifactType != mediaType {
			continue
		}
		data, wrong := attached(ref.Context().Digest(d.Digest.String()), options...)
		if err = errors.Join(err, wrong); wrong == nil && data != nil {
			all = append(all, data)
		}
	}
	if len(all) > 0 {
		err = nil
	}
	return all, err
}

// attached returns the content of an artifact, or nil if it is none of podenv's.
func attached(ref name.Digest, options ...remote.Option) ([]byte, error) {
	img, err := remote.Image(ref, options...)
	if err != nil {
		return nil, err
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		return nil, nil
	}
	r, err := layers[0].Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, maxSize))
}

// Check returns the provenance of ref, with a commit if a statement has one. Its statement must be signed with
// key, unless that is nil. Check asks ref's registry and nobody else.
func Check(ctx context.Context, ref name.Digest, key Key, options ...remote.Option) (*Provenance, error) {
	hash, err := v1.NewHash(ref.DigestStr())
	if err != nil {
		return nil, err
	}
	all, err := Attached(ref, EnvelopeType, append(options, remote.WithContext(ctx))...)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s: nothing says how it was built: it has no statement attached; `podenv publish` attaches one", ref)
	var found *Provenance
	for _, data := range all {
		if p, wrong := open(ctx, data, key, hash); wrong != nil {
			err = fmt.Errorf("%s: %w", ref, wrong)
		} else if found == nil || p.Commit != "" {
			found = p
		}
	}
	if found != nil {
		return found, nil
	}
	return nil, err
}
