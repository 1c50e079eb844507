package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/testutil"
)

func TestMain(m *testing.M) {
	if os.Getenv("IMAGE_VERIFIER") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newKey writes a key pair, and returns the private key and the file of the public one.
func newKey(t *testing.T) (attest.Key, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	publicDER, errPublic := x509.MarshalPKIXPublicKey(public)
	if err := errors.Join(err, errPublic); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testutil.WriteFile(t, filepath.Join(dir, "key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	testutil.WriteFile(t, filepath.Join(dir, "key.pub"), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER})))
	key, err := attest.LoadKey(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	return key, filepath.Join(dir, "key.pub")
}

// TestAnImageOfWhichOneByteWasChangedIsRefused: what was signed may be pulled; what differs in one
// byte has another digest, which nobody signed.
func TestAnImageOfWhichOneByteWasChangedIsRefused(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)))
	defer server.Close()
	key, public := newKey(t)
	_, foreign := newKey(t)
	digests := map[string]string{}
	for tag, r := range map[string]publish.Registry{"one": {Key: key}, "onf": {}} {
		r.Path = server.Listener.Addr().String() + "/k8s"
		img, err := image.Stored{Architecture: "amd64", Key: tag, Layers: []func(io.Writer) error{
			image.WriteTar([]image.File{{Path: "/x", Mode: 0o755, Data: []byte(tag)}}),
		}}.Write(t.Context(), t.TempDir(), "x")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := r.Push(t.Context(), []publish.Image{{Name: "x", Tag: tag, Platforms: map[string]v1.Image{"linux/amd64": img}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		digests[tag] = rows[0].Digest
	}
	ref := server.Listener.Addr().String() + "/k8s/x:one"
	for name, tc := range map[string]struct{ ref, digest, key, want string }{
		"signed":                    {ref, digests["one"], public, "signed"},
		"one byte was changed":      {ref, digests["onf"], public, "not signed with this key"},
		"signed by somebody else":   {ref, digests["one"], foreign, "not signed with this key"},
		"never published":           {ref, "sha256:" + digests["one"][8:] + "0", public, "nothing says how it was built"},
		"no key":                    {ref, digests["one"], "/none", "reading the key"},
		"a name that is none":       {"UPPER:x", digests["one"], public, "could not parse reference"},
		"a registry that is not up": {"127.0.0.1:1/x:1", digests["one"], public, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-key", tc.key, "-name", tc.ref, "-digest", tc.digest, "-stdin-media-type", "application/json")
			cmd.Env = append(os.Environ(), "IMAGE_VERIFIER=1")
			said, err := cmd.Output()
			if allowed := err == nil; allowed != (tc.want == "signed") || !strings.Contains(string(said), tc.want) {
				t.Errorf("allowed: %t, because it says %q, not %q (%v)", allowed, said, tc.want, err)
			}
		})
	}
}
