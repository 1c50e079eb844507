package attest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/testutil"
)

// goProgram is a Go program with modules, and with one that has no version of its own.
func goProgram(t *testing.T) image.File {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", file, "podenv.dev/test/images/envdump").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return image.File{Path: "/bin/x", Mode: 0o755, Source: file}
}

func testImage(t *testing.T, files ...image.File) v1.Image {
	t.Helper()
	img, err := image.Stored{Layers: []func(io.Writer) error{image.WriteTar(files)}}.Write(t.Context(), t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestBOMHasTheModulesOfProgramsAndTheDebianPackages(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "x.tar")
	if err := (image.Spec{Name: "podenv.dev/x:1", Files: []image.File{goProgram(t)}}).Write(archive); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]image.File{
		"a program":             {goProgram(t)},
		"a program in an image": {{Path: "/kind/images/x.tar", Mode: 0o644, Source: archive}},
	} {
		t.Run(name, func(t *testing.T) {
			files = append(files, image.File{Path: "/usr/share/x.tar", Mode: 0o644, Data: bytes.Repeat([]byte("no tar"), 1000)},
				image.File{Path: "/bin/c", Mode: 0o755, Data: []byte("\x7fELF, and not of Go")}, image.File{Path: "/x", Mode: 0o644, Data: []byte("x")})
			img := testImage(t, files...)
			data, err := BOM(img, "x", "v1.33.13+podenv.2", []string{"kmod=30+20221128-1", "libc6=2.36-9"})
			if err != nil {
				t.Fatal(err)
			}
			again, err := BOM(img, "x", "v1.33.13+podenv.2", []string{"libc6=2.36-9", "kmod=30+20221128-1"})
			if err != nil || !bytes.Equal(data, again) {
				t.Errorf("a second bill differs: %v", err)
			}
			var doc struct {
				Packages []struct {
					ExternalRefs []struct{ ReferenceLocator string }
				}
				Relationships []struct{ RelationshipType string }
			}
			if err := json.Unmarshal(data, &doc); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range doc.Packages {
				got = append(got, p.ExternalRefs[0].ReferenceLocator)
			}
			for _, want := range []string{
				"pkg:deb/debian/kmod@30%2B20221128-1", "pkg:deb/debian/libc6@2.36-9",
				"pkg:golang/stdlib@" + strings.TrimPrefix(runtime.Version(), "go"),
				"pkg:golang/podenv.dev@v1.33.13%2Bpodenv.2", "pkg:golang/golang.org/x/sys@v0.49.0",
			} {
				if !slices.Contains(got, want) {
					t.Errorf("the bill lacks %s: %q", want, got)
				}
			}
			if len(doc.Relationships) != len(doc.Packages) || doc.Relationships[0].RelationshipType != "DESCRIBES" {
				t.Errorf("%d relationships of %d packages", len(doc.Relationships), len(doc.Packages))
			}
		})
	}
}

func TestLoadKeySaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	testutil.WriteFile(t, text, "secret")
	encrypted := filepath.Join(dir, "encrypted")
	testutil.WriteFile(t, encrypted, "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "reading the key: open",
		text:                       "is no key in PEM without a passphrase",
		encrypted:                  "make one with `openssl genpkey -algorithm ed25519`",
	} {
		_, err := LoadKey(file)
		testutil.CheckError(t, err, want)
	}
}

// TestBOMHasStagingModules: Kubernetes replaces its staging modules by folders, which have no version.
func TestBOMHasStagingModules(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/x\n\ngo 1.24.0\n\nrequire example.com/y v0.0.0\n\nreplace example.com/y => ./y\n",
		"main.go":   "package main\n\nimport _ \"example.com/y\"\n\nfunc main() {}\n",
		"y/go.mod":  "module example.com/y\n\ngo 1.24.0\n",
		"y/main.go": "package y\n",
	} {
		testutil.WriteFile(t, filepath.Join(dir, name), text)
	}
	cmd := exec.Command("go", "build", "-o", "program", ".")
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := BOM(testImage(t, image.File{Path: "/x", Mode: 0o755, Source: filepath.Join(dir, "program")}), "x", "v1.33.13", nil)
	if err != nil || !strings.Contains(string(data), `"pkg:golang/example.com/y@v1.33.13"`) {
		t.Errorf("the bill is %s, %v", data, err)
	}
}

// keyFiles writes a pair of keys.
func keyFiles(t *testing.T) (private, public string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	write := func(kind string, der []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "key.pem")
		testutil.WriteFile(t, file, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
		return file
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	private = write("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(pub)
	return private, write("PUBLIC KEY", der, err)
}

func TestAPublicKeyDoesNotSign(t *testing.T) {
	private, public := keyFiles(t)
	if _, err := LoadSigner(t.Context(), private); err != nil {
		t.Error(err)
	}
	_, err := LoadSigner(t.Context(), public)
	testutil.CheckError(t, err, public+" cannot sign")
	testutil.CheckError(t, err, "name the file of the private key")
}

// The key may also sign other statements about an image: a bill of materials, a scan.
func TestAStatementOfAnotherTypeIsNoProvenance(t *testing.T) {
	private, _ := keyFiles(t)
	key, err := LoadSigner(t.Context(), private)
	if err != nil {
		t.Fatal(err)
	}
	hash := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}
	for predicate, wantErr := range map[string]string{provenanceType: "", "https://spdx.dev/Document": `of the type "https://spdx.dev/Document", not of provenance`} {
		payload, err := json.Marshal(statement{PredicateType: predicate, Subject: []Resource{{Digest: map[string]string{"sha256": hash.Hex}}}})
		if err != nil {
			t.Fatal(err)
		}
		signer, err := dsse.NewEnvelopeSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		envelope, err := signer.SignPayload(t.Context(), payloadType, payload)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(envelope)
		if err != nil {
			t.Fatal(err)
		}
		_, err = open(t.Context(), data, key, hash)
		testutil.CheckError(t, err, wantErr)
	}
}
