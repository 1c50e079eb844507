package publish

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/testutil"
)

// server is a registry over HTTP that counts requests and may answer in another way first.
type server struct {
	*httptest.Server
	path   string // HOST/PATH
	mu     sync.Mutex
	seen   []string                                                 // "PUT /v2/…"
	before func(w http.ResponseWriter, r *http.Request) (done bool) // nil: nothing
}

func newServer(t *testing.T, start func(http.Handler) *httptest.Server, options ...registry.Option) *server {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	s := new(server)
	handler := registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	s.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	s.path = s.Listener.Addr().String() + "/kubernetes"
	return s
}

// sent returns the requests of that method since the last call.
func (s *server) sent(method string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.seen
	s.seen = nil
	return slices.DeleteFunc(all, func(r string) bool { return !strings.HasPrefix(r, method+" ") })
}

// testImage is the image called name with a file of that content, for two platforms.
func testImage(t *testing.T, name, content string) Image {
	t.Helper()
	i := Image{Name: name, Tag: "v1.33.13_podenv.26", Platforms: map[string]v1.Image{}, Debian: []string{"kmod=30+1"},
		Annotations: map[string]string{"org.opencontainers.image.title": name}}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := image.Stored{Architecture: arch, Key: content, Layers: []func(io.Writer) error{
			image.WriteTar(image.MinimalFiles()),
			image.WriteTar([]image.File{{Path: "/bin/x", Mode: 0o755, Data: []byte(content + arch)}}),
		}}.Write(t.Context(), t.TempDir(), name)
		if err != nil {
			t.Fatal(err)
		}
		i.Platforms["linux/"+arch] = img
	}
	return i
}

// keys returns a key pair.
func keys(t *testing.T) (private, public attest.Key) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	load := func(kind string, der []byte, err error) attest.Key {
		file := filepath.Join(t.TempDir(), "key")
		testutil.WriteFile(t, file, string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})))
		key, loadErr := attest.LoadKey(file)
		if err := errors.Join(err, loadErr); err != nil {
			t.Fatal(err)
		}
		return key
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	private = load("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(pub)
	return private, load("PUBLIC KEY", der, err)
}

func TestPublishedImagesCanBeFoundAndChecked(t *testing.T) {
	for name, options := range map[string][]registry.Option{
		"a registry that lists referrers": {registry.WithReferrersSupport(true)},
		"one of before that":              nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, httptest.NewServer, options...)
			private, public := keys(t)
			r := Registry{Path: s.path, Key: private, Provenance: attest.Provenance{Series: "v1.33", Release: "v1.33.13",
				Commit: "abc"}}
			x := testImage(t, "x", "one")
			rows, err := r.Push(t.Context(), []Image{x}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ref := s.path + "/x:v1.33.13_podenv.26"
			if rows[0].Reference != ref || rows[0].State != "pushed" || rows[0].Platforms != "linux/amd64,linux/arm64" || rows[0].Bytes < 1000 {
				t.Errorf("rows = %+v", rows)
			}
			p, err := Find(t.Context(), ref, public)
			if err != nil {
				t.Fatal(err)
			}
			if p.Ref.DigestStr() != rows[0].Digest || p.Provenance.Release != "v1.33.13" || p.Provenance.Commit != "abc" {
				t.Errorf("found %s, %+v", p.Ref, p.Provenance)
			}
			if err := p.Read(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if diff, err := p.Difference(x); diff != "" || err != nil {
				t.Errorf("what was published differs: %s, %v", diff, err)
			}
			if diff, err := Difference(p.Platforms, testImage(t, "x", "two").Platforms); !strings.HasPrefix(diff, `linux/amd64, "layer 2: bin/x 0 755`) || err != nil {
				t.Errorf("another build: %q, %v", diff, err)
			}
			// Each image of the index has a statement, and a bill of materials, of its own.
			for platform, img := range p.Platforms {
				if err := validate.Image(img); err != nil {
					t.Errorf("%s: %v", platform, err)
				}
				hash, err := img.Digest()
				if err != nil {
					t.Fatal(err)
				}
				digest := p.Ref.Context().Digest(hash.String())
				if _, err := attest.Check(t.Context(), digest, public); err != nil {
					t.Errorf("%s: %v", platform, err)
				}
				boms, err := attest.Attached(digest, attest.SPDXType)
				if err != nil || len(boms) != 1 || !strings.Contains(string(boms[0]), `"pkg:deb/debian/kmod@30%2B1"`) {
					t.Errorf("%s: bills of materials %s, %v", platform, boms, err)
				}
			}
			if index, err := remote.Index(p.Ref); err != nil {
				t.Error(err)
			} else if m, err := index.IndexManifest(); err != nil || m.MediaType != types.OCIImageIndex || m.Annotations["org.opencontainers.image.title"] != "x" {
				t.Errorf("index = %+v, %v", m, err)
			}
		})
	}
}

// Scanners read the version of a module as Go has it, and a tag has no plus sign.
func TestTheBillHasTheVersionThatTheProgramsHave(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	img, err := image.Stored{Architecture: "amd64", Key: "x", Layers: []func(io.Writer) error{
		image.WriteTar([]image.File{{Path: "/bin/x", Mode: 0o755, Source: program}}),
	}}.Write(t.Context(), t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	x := Image{Name: "x", Tag: "v1.33.13_podenv.26", Platforms: map[string]v1.Image{"linux/amd64": img}}
	if _, err := (Registry{Path: s.path}).Push(t.Context(), []Image{x}, nil); err != nil {
		t.Fatal(err)
	}
	boms, err := attest.Attached(s.repository(t, "x").Digest(mustDigest(t, img)), attest.SPDXType)
	if want := `"pkg:golang/podenv.dev@v1.33.13%2Bpodenv.26"`; err != nil || len(boms) != 1 || !strings.Contains(string(boms[0]), want) {
		t.Errorf("%d bills, want one with %s: %v", len(boms), want, err)
	}
}

func TestOnlyWhatTheRegistryLacksIsSent(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	private, _ := keys(t)
	r := Registry{Path: s.path, Key: private}
	push := func(images ...Image) (put, patched []string, rows []Row) {
		t.Helper()
		rows, err := r.Push(t.Context(), images, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		for _, req := range s.seen {
			if strings.HasPrefix(req, "PUT ") && strings.Contains(req, "/manifests/") {
				put = append(put, req)
			}
			if strings.HasPrefix(req, "PATCH ") {
				patched = append(patched, req)
			}
		}
		s.seen = nil
		s.mu.Unlock()
		return put, patched, rows
	}
	put, _, _ := push(testImage(t, "x", "one"), testImage(t, "y", "one"))
	tags := put[len(put)-2:]
	if tags[0] != "PUT /v2/kubernetes/x/manifests/v1.33.13_podenv.26" || tags[1] != "PUT /v2/kubernetes/y/manifests/v1.33.13_podenv.26" {
		t.Errorf("the tags do not come last: %q", put)
	}
	put, patched, rows := push(testImage(t, "x", "one"))
	if len(put)+len(patched) > 0 || rows[0].State != "exists" {
		t.Errorf("a second time sent %q %q: %+v", put, patched, rows)
	}
	changed := testImage(t, "x", "two")
	changed.Tag = "v1.33.13_podenv.27"
	if _, patched, _ = push(changed); len(patched) != 2*(1+1)+5*(1+1) { // of two images and five attachments
		t.Errorf("a change in one layer sent %d blobs: %q", len(patched), patched)
	}
	private, public := keys(t) // the same images, signed by somebody else
	r.Key = private
	if put, _, rows = push(testImage(t, "y", "one")); len(put) == 0 || rows[0].State != "exists" {
		t.Errorf("another key attached nothing: %+v", rows)
	}
	if _, err := Find(t.Context(), s.path+"/y:v1.33.13_podenv.26", public); err != nil {
		t.Error(err)
	}
}

// Who commits and publishes again has the same images, and wants that others can build them.
func TestAStatementGetsTheCommitThatItLacked(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	private, public := keys(t)
	x := testImage(t, "x", "one")
	for i, want := range []string{"", "abc", "abc"} {
		s.sent("")
		r := Registry{Path: s.path, Key: private, Provenance: attest.Provenance{Commit: want}}
		if _, err := r.Push(t.Context(), []Image{x}, nil); err != nil {
			t.Fatal(err)
		}
		if sent := s.sent(http.MethodPut); (len(sent) > 0) != (i < 2) {
			t.Errorf("run %d sent %q", i+1, sent)
		}
		p, err := Find(t.Context(), s.path+"/x:"+x.Tag, public)
		if err != nil || p.Provenance.Commit != want {
			t.Errorf("run %d: %+v, %v", i+1, p, err)
		}
	}
}

func TestATagOfSomethingElseIsNotMoved(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	r := Registry{Path: s.path}
	if _, err := r.Push(t.Context(), []Image{testImage(t, "y", "one")}, nil); err != nil {
		t.Fatal(err)
	}
	s.sent("")
	both := []Image{testImage(t, "x", "two"), testImage(t, "y", "two")}
	_, err := r.Push(t.Context(), both, nil)
	testutil.CheckError(t, err, "/kubernetes/y:v1.33.13_podenv.26: the tag exists with another digest")
	testutil.CheckError(t, err, "--force moves it")
	if !errors.Is(err, ErrTagExists) {
		t.Errorf("%v is not ErrTagExists", err)
	}
	if sent := slices.DeleteFunc(s.sent(""), func(r string) bool { return strings.HasPrefix(r, "GET ") || strings.HasPrefix(r, "HEAD ") }); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
	r.Force = true
	if rows, err := r.Push(t.Context(), both, nil); err != nil || rows[1].State != "pushed" {
		t.Errorf("--force: %+v, %v", rows, err)
	}
}

func TestADryRunAsksNobody(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	rows, err := Registry{Path: s.path, DryRun: true}.Push(t.Context(), []Image{testImage(t, "x", "one")}, nil)
	if err != nil || len(rows) != 1 || rows[0].State != "not pushed" || !strings.HasPrefix(rows[0].Digest, "sha256:") {
		t.Errorf("rows = %+v, %v", rows, err)
	}
	if seen := s.seen; len(seen) > 0 {
		t.Errorf("asked %q", seen)
	}
	for _, path := range []string{"http://host/x", "host", "host.example/", "host.example/UPPER"} {
		_, err := Registry{Path: path}.Tag("x", "x")
		testutil.CheckError(t, err, "want HOST/PATH")
	}
}

func TestErrorsOfRegistriesSayWhatToDo(t *testing.T) {
	answer := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && r.URL.Path == "/v2/" {
				return false
			}
			w.WriteHeader(status)
			return true
		}
	}
	for name, tc := range map[string]struct {
		start  func(http.Handler) *httptest.Server
		before func(http.ResponseWriter, *http.Request) bool
		want   string
	}{
		"401":                    {before: answer(401), want: "log in with `docker login 127.0.0.1:"},
		"403":                    {before: answer(403), want: "may not do this there"},
		"404":                    {before: answer(404), want: "some registries want a repository to be created first"},
		"429":                    {before: answer(429), want: "wait, and run the same command again"},
		"an unknown certificate": {start: httptest.NewTLSServer, want: "SSL_CERT_FILE"},
		"a cut upload": {before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPatch {
				return false
			}
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			panic(http.ErrAbortHandler) // closes the connection
		}, want: "the connection was cut: run the same command again"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.start == nil {
				tc.start = httptest.NewServer
			}
			s := newServer(t, tc.start)
			s.before = tc.before
			push := func() error {
				_, err := Registry{Path: s.path}.Push(t.Context(), []Image{testImage(t, "x", "one")}, nil)
				return err
			}
			checked := tc.want
			if name == "a cut upload" {
				checked = "" // before the build there is nothing to cut
			}
			testutil.CheckError(t, Registry{Path: s.path}.Check(t.Context(), "x"), checked)
			if checked != "" && name != "429" { // which is tried again for seconds
				_, err := Find(t.Context(), s.path+"/x:1", nil) // podenv verify
				testutil.CheckError(t, err, checked)
			}
			testutil.CheckError(t, push(), tc.want)
			s.mu.Lock()
			s.before = nil
			s.mu.Unlock()
			if tc.before == nil {
				return
			}
			if tags, err := remote.List(s.repository(t, "x")); err == nil && len(tags) > 0 {
				t.Errorf("tags %q were published", tags)
			}
			if err := push(); err != nil {
				t.Errorf("the same command does not go on: %v", err)
			}
		})
	}
}

// Before the build: whom a registry lets read, it may not let write.
func TestAnAccountThatMayOnlyReadIsToldBeforeTheBuild(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	r := Registry{Path: s.path}
	if err := r.Check(t.Context(), "x"); err != nil {
		t.Errorf("who may write: %v", err)
	}
	if put := s.sent(http.MethodPut); len(put) > 0 {
		t.Errorf("sent %q", put)
	}
	s.mu.Lock()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodPost
	}
	s.mu.Unlock()
	testutil.CheckError(t, r.Check(t.Context(), "x"), "may not do this there")
	r.DryRun = true
	if err := r.Check(t.Context(), "x"); err != nil {
		t.Errorf("a dry run asks: %v", err)
	}
}

func TestCtrlCEndsAQuestionThatARegistryDoesNotAnswer(t *testing.T) {
	for what, ask := range map[string]func(ctx context.Context, path string) error{
		"may I push": func(ctx context.Context, path string) error { return Registry{Path: path}.Check(ctx, "x") },
		"push": func(ctx context.Context, path string) error {
			_, err := Registry{Path: path}.Push(ctx, []Image{testImage(t, "x", "one")}, nil)
			return err
		},
		"find": func(ctx context.Context, path string) error { _, err := Find(ctx, path+"/x:1", nil); return err },
	} {
		t.Run(what, func(t *testing.T) {
			s := newServer(t, httptest.NewServer)
			ctx, cancel := context.WithCancel(t.Context())
			s.before = func(_ http.ResponseWriter, r *http.Request) bool {
				cancel()
				waits(t, r)
				return false
			}
			if err := ask(ctx, s.path); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want context.Canceled", err)
			}
		})
	}
}

// waits waits for the client of r to go.
func waits(t *testing.T, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(5 * time.Second):
		t.Error("it waits for an answer after Ctrl-C")
	}
}

func TestCtrlCEndsReading(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	if _, err := (Registry{Path: s.path}).Push(t.Context(), []Image{testImage(t, "x", "one")}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Find(ctx, s.path+"/x:v1.33.13_podenv.26", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		_, _ = w.Write([]byte("a part"))
		w.(http.Flusher).Flush()
		cancel()
		waits(t, r)
		return true
	}
	s.mu.Unlock()
	if err := p.Read(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// The tags are put one after the other: what has one is whole.
func TestAPublishThatEndsBetweenTwoTagsGoesOn(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	private, public := keys(t)
	images := []Image{testImage(t, "x", "one"), testImage(t, "y", "one")}
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, "/y/manifests/"+images[1].Tag) {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	r := Registry{Path: s.path, Key: private}
	_, err := r.Push(t.Context(), images, nil)
	testutil.CheckError(t, err, "may not do this there")
	p, err := Find(t.Context(), s.path+"/x:"+images[0].Tag, public)
	if err == nil {
		err = p.Read(t.Context(), nil)
	}
	if err != nil {
		t.Errorf("the first image is not whole: %v", err)
	}
	_, err = Find(t.Context(), s.path+"/y:"+images[1].Tag, public)
	testutil.CheckError(t, err, "check the name")
	s.mu.Lock()
	s.before = nil
	s.mu.Unlock()
	if rows, err := r.Push(t.Context(), images, nil); err != nil || rows[0].State != "exists" || rows[1].State != "pushed" {
		t.Errorf("the same command: %+v, %v", rows, err)
	}
}

func TestErrorsOfConnectionsSayWhatToDo(t *testing.T) {
	ref := name.MustParseReference("registry.example.com:5000/x:1")
	for what, tc := range map[string]struct {
		err  error
		want string
	}{
		"an unknown authority":  {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "SSL_CERT_FILE"},
		"an expired one":        {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "this host's clock"},
		"one for another name":  {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}}}, "check the name"},
		"no TLS":                {&url.Error{Op: "Get", Err: http.ErrSchemeMismatch}, "needs to be localhost"},
		"a name that is none":   {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host"}}, "nothing answers at registry.example.com:5000"},
		"a port that is closed": {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "nothing answers at registry.example.com:5000"},
	} {
		t.Run(what, func(t *testing.T) {
			testutil.CheckError(t, explain(t.Context(), ref, tc.err), tc.want)
		})
	}
}

func (s *server) repository(t *testing.T, repo string) name.Repository {
	t.Helper()
	r, err := name.NewRepository(s.path + "/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAnInterruptedUploadPublishesNothing(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	ctx, cancel := context.WithCancel(t.Context())
	s.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/y/") {
			cancel()
		}
		return false
	}
	images := []Image{testImage(t, "x", "one"), testImage(t, "y", "one")}
	if _, err := (Registry{Path: s.path}).Push(ctx, images, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Push = %v", err)
	}
	for _, put := range s.sent(http.MethodPut) {
		if strings.HasSuffix(put, images[0].Tag) {
			t.Errorf("published: %s", put)
		}
	}
}

func TestTheSignatureIsChecked(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	private, public := keys(t)
	_, foreign := keys(t)
	images := []Image{testImage(t, "x", "one"), testImage(t, "y", "one")}
	if _, err := (Registry{Path: s.path, Key: private}).Push(t.Context(), images[:1], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := (Registry{Path: s.path}).Push(t.Context(), images[1:], nil); err != nil {
		t.Fatal(err)
	}
	bare := s.repository(t, "z").Tag("1")
	if err := remote.Write(bare, images[0].Platforms["linux/amd64"]); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		ref  string
		key  attest.Key
		want string
	}{
		"signed":                     {"/x:v1.33.13_podenv.26", public, ""},
		"signed, and no key":         {"/x:v1.33.13_podenv.26", nil, ""},
		"a foreign key":              {"/x:v1.33.13_podenv.26", foreign, attest.ErrSignature.Error()},
		"unsigned":                   {"/y:v1.33.13_podenv.26", public, attest.ErrSignature.Error()},
		"unsigned, and no key":       {"/y:v1.33.13_podenv.26", nil, ""},
		"not of podenv":              {"/z:1", nil, "nothing says how it was built"},
		"one image of the index":     {"/x@" + mustDigest(t, images[0].Platforms["linux/amd64"]), public, "name the tag or the digest of its index"},
		"a tag that does not exist":  {"/x:none", nil, "check the name"},
		"a reference without a tag":  {"/x", nil, "want an image as HOST/PATH/NAME:TAG"},
		"no registry at the address": {"", nil, "want an image"},
	} {
		_, err := Find(t.Context(), s.path+tc.ref, tc.key)
		if testutil.CheckError(t, err, tc.want); t.Failed() {
			t.Fatal(name)
		}
	}
}

// published returns an image that is published to s with a signed statement, and is found there by the key.
func published(t *testing.T, s *server) (x Image, found *Published, key attest.Key) {
	t.Helper()
	private, public := keys(t)
	x = testImage(t, "x", "one")
	if _, err := (Registry{Path: s.path, Key: private}).Push(t.Context(), []Image{x}, nil); err != nil {
		t.Fatal(err)
	}
	found, err := Find(t.Context(), s.path+"/x:"+x.Tag, public)
	if err != nil {
		t.Fatal(err)
	}
	return x, found, public
}

// TestAStatementThatCannotBeReadHidesNoOther: who may write to a repository could attach one otherwise, and make
// images that were published before impossible to check.
func TestAStatementThatCannotBeReadHidesNoOther(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	x, good, public := published(t, s)
	desc, err := remote.Head(good.Ref)
	if err != nil {
		t.Fatal(err)
	}
	broken, err := attest.Attachment([]byte("{}"), attest.EnvelopeType, *desc)
	if err != nil {
		t.Fatal(err)
	}
	digest := mustDigest(t, broken)
	if err := remote.Write(s.repository(t, "x").Digest(digest), broken); err != nil {
		t.Fatal(err)
	}
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		missing := strings.HasSuffix(r.URL.Path, digest)
		if missing {
			w.WriteHeader(http.StatusNotFound)
		}
		return missing
	}
	if _, err := Find(t.Context(), s.path+"/x:"+x.Tag, public); err != nil {
		t.Error(err)
	}
}

// TestAChangedByteIsFound: the signature of one image does not fit another one, and a layer whose
// content is not that of its digest cannot be read.
func TestAChangedByteIsFound(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	x, good, public := published(t, s)
	envelopes, err := attest.Attached(good.Ref, attest.EnvelopeType)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody moves the tag to another image, and attaches the statement of the first one.
	other, err := testImage(t, "x", "onf").index()
	if err != nil {
		t.Fatal(err)
	}
	tag := s.repository(t, "x").Tag(x.Tag)
	if err := remote.WriteIndex(tag, other); err != nil {
		t.Fatal(err)
	}
	hash, _ := other.Digest()
	size, _ := other.Size()
	attach := func(data []byte) {
		t.Helper()
		a, err := attest.Attachment(data, attest.EnvelopeType, v1.Descriptor{MediaType: types.OCIImageIndex, Digest: hash, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		digest, _ := a.Digest()
		if err := remote.Write(s.repository(t, "x").Digest(digest.String()), a); err != nil {
			t.Fatal(err)
		}
	}
	attach(envelopes[0])
	_, err = Find(t.Context(), tag.String(), public)
	testutil.CheckError(t, err, "its statement is about another image")
	// A payload that fits has a signature that does not.
	var e map[string]any
	if err := json.Unmarshal(envelopes[0], &e); err != nil {
		t.Fatal(err)
	}
	unsigned, err := attest.Envelope(t.Context(), nil, "x", hash, attest.Provenance{})
	if err != nil {
		t.Fatal(err)
	}
	forged := maps.Clone(e)
	var u map[string]any
	if err := json.Unmarshal(unsigned, &u); err != nil {
		t.Fatal(err)
	}
	forged["payload"] = u["payload"]
	data, _ := json.Marshal(forged)
	attach(data)
	if _, err = Find(t.Context(), tag.String(), public); err == nil {
		t.Error("a forged statement is taken")
	}
	// The registry sends another index, or another manifest, than the digest names.
	manifest, err := good.Platforms["linux/amd64"].Digest()
	if err != nil {
		t.Fatal(err)
	}
	another, err := other.RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, digest := range []string{good.Ref.DigestStr(), manifest.String()} {
		s.mu.Lock()
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/manifests/"+digest) {
				return false
			}
			w.Header().Set("Content-Type", string(types.OCIImageIndex))
			_, _ = w.Write(another)
			return true
		}
		s.mu.Unlock()
		fresh, err := Find(t.Context(), good.Ref.String(), public)
		if err == nil {
			err = fresh.Read(t.Context(), nil)
		}
		testutil.CheckError(t, err, "does not match requested digest")
	}
	// The registry sends another layer, or another configuration, than the digest names.
	m, err := good.Platforms["linux/amd64"].Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ digest, want string }{{m.Layers[0].Digest.String(), "linux/amd64, layer 1: "}, {m.Config.Digest.String(), "linux/amd64: "}} {
		s.mu.Lock()
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/blobs/"+tc.digest) {
				return false
			}
			_, _ = w.Write([]byte("something else"))
			return true
		}
		s.mu.Unlock()
		fresh, err := Find(t.Context(), good.Ref.String(), public) // nothing of it has been read
		if err != nil {
			t.Fatal(err)
		}
		fresh.Platforms = map[string]v1.Image{"linux/amd64": fresh.Platforms["linux/amd64"]}
		testutil.CheckError(t, fresh.Read(t.Context(), nil), tc.want)
	}
}

// What runs is what an index names first for a platform: an image that a check does not read could be that.
func TestAnIndexThatNamesSomethingElseIsNotEqual(t *testing.T) {
	s := newServer(t, httptest.NewServer)
	x, other := testImage(t, "x", "one"), testImage(t, "x", "two").Platforms["linux/amd64"]
	good, err := x.index()
	if err != nil {
		t.Fatal(err)
	}
	for tag, tc := range map[string]struct {
		index               v1.ImageIndex
		want, wantDifferent string
	}{
		"good": {index: good},
		"two": {index: mutate.AppendManifests(good, mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}}),
			want: "its index has an image without a platform, or two for one"},
		"none":  {index: mutate.AppendManifests(good, mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: nil}}), want: "an image without a platform"},
		"other": {index: mutate.Annotations(good, map[string]string{"a": "b"}).(v1.ImageIndex), wantDifferent: "the index"},
	} {
		t.Run(tag, func(t *testing.T) {
			ref := s.repository(t, "x").Tag(tag)
			d, err := partial.Descriptor(tc.index)
			if err != nil {
				t.Fatal(err)
			}
			envelope, err := attest.Envelope(t.Context(), nil, "x", d.Digest, attest.Provenance{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := attest.Attachment(envelope, attest.EnvelopeType, *d)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(remote.WriteIndex(ref, tc.index), remote.Write(ref.Digest(mustDigest(t, a)), a)); err != nil {
				t.Fatal(err)
			}
			p, err := Find(t.Context(), ref.String(), nil)
			if testutil.CheckError(t, err, tc.want); err != nil {
				return
			}
			if diff, err := p.Difference(x); err != nil || !strings.HasPrefix(diff, tc.wantDifferent) || (diff == "") != (tc.wantDifferent == "") {
				t.Errorf("differs in %q, %v", diff, err)
			}
		})
	}
}

func mustDigest(t *testing.T, img v1.Image) string {
	t.Helper()
	hash, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return hash.String()
}
