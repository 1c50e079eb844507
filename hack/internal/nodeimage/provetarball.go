package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"podenv.dev/hack/internal/engine"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/progress"
	"podenv.dev/hack/internal/run"
)

// ProveServerTarball has the plain kind command line build a node image of the release
// version from a server tarball, looks into the image, and deletes it.
//
// kind fetches what is no part of a Kubernetes release from registries: etcd, CoreDNS, its
// own network and storage. No registry is in reach, so a proxy on this machine answers in
// their place, with empty images. All else is kind's own: it reads the tarball, installs
// its binaries and loads its images.
func ProveServerTarball(ctx context.Context, l layout.Layout, e *engine.Engine, serverTarball, version string, step *progress.Step) (err error) {
	base, err := Base(ctx, l, e, step)
	if err != nil {
		return err
	}
	address, err := e.BridgeAddress(ctx)
	if err != nil {
		return err
	}
	registries, err := newRegistries(address)
	if err != nil {
		return err
	}
	defer registries.close()

	dir, err := os.MkdirTemp("", "podenv-kind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	const ours, made = "podenv/kind-base:proof", "podenv/kind-node:proof"
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer cancel()
		err = errors.Join(err, deleteProof(clean, e, made, ours))
	}()
	if err := deleteProof(ctx, e, made, ours); err != nil { // what a killed run left
		return err
	}
	step.Now("preparing a base image that trusts the proxy")
	for file, content := range map[string]string{
		"ca.pem": string(goproxy.CA_CERT),
		"Dockerfile": "FROM " + base + "\nCOPY ca.pem /etc/ssl/certs/ca-certificates.crt\n" +
			"ENV HTTPS_PROXY=" + registries.proxy() + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := e.Docker(ctx, "build", "--tag", ours, dir).Log(step.Log()).Run(); err != nil {
		return err
	}
	step.Now("kind build node-image --type file")
	// kind keeps what it takes from the tarball below the folder for temporary files.
	kind := run.Command(ctx, "go", "tool", "kind", "build", "node-image", "--type", "file", "--base-image", ours, "--image", made, serverTarball)
	if err := kind.Dir(l.Root).Env("TMPDIR=" + dir).Log(step.Log()).Run(); err != nil {
		return err
	}
	step.Now("looking into the image")
	for _, look := range []struct {
		command []string
		want    string
	}{
		{[]string{"cat", "/kind/version"}, version},
		{[]string{"kubelet", "--version"}, "Kubernetes " + version},
		{[]string{"kubeadm", "version", "--output=short"}, version},
	} {
		args := append([]string{"run", "--rm", "--entrypoint", look.command[0], made}, look.command[1:]...)
		if saw, err := e.Docker(ctx, args...).Log(step.Log()).Output(); err != nil || strings.TrimSpace(saw) != look.want {
			return errors.Join(err, fmt.Errorf("%s in kind's node image says %q, want %q", strings.Join(look.command, " "), saw, look.want))
		}
	}
	return nil
}

// deleteProof deletes images, those of them that there are, and containers made from them:
// kind deletes its own, unless it is interrupted.
func deleteProof(ctx context.Context, e *engine.Engine, images ...string) error {
	for _, image := range images {
		if !hasImage(ctx, e, image) {
			continue
		}
		left, err := e.Docker(ctx, "ps", "--all", "--quiet", "--filter", "ancestor="+image).Output()
		if err != nil {
			return err
		}
		if left != "" {
			if err := e.Docker(ctx, append([]string{"rm", "--force", "--volumes"}, strings.Fields(left)...)...).Run(); err != nil {
				return err
			}
		}
		if err := e.Docker(ctx, "rmi", image).Run(); err != nil {
			return err
		}
	}
	return nil
}

// registries stand in for all registries: a proxy that answers HTTPS requests to any host
// from a registry on this machine, which has an empty image of every name.
type registries struct {
	registry *httptest.Server
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex
	have map[string]bool
}

// newRegistries starts the proxy on a free port of one IP address of this host. It refuses
// an address that means all of the host's: the proxy is for containers alone.
func newRegistries(address string) (*registries, error) {
	if ip := net.ParseIP(address); ip == nil || ip.IsUnspecified() {
		return nil, fmt.Errorf("the proxy for kind needs one address of this host to listen on, not %q", address)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, err
	}
	r := &registries{
		registry: httptest.NewServer(ggcr.New(ggcr.Logger(discard()))),
		listener: listener,
		have:     map[string]bool{},
	}
	proxy := goproxy.NewProxyHttpServer()
	proxy.Logger = discard()
	proxy.OnRequest().HandleConnect(goproxy.AlwaysMitm)
	proxy.OnRequest().DoFunc(func(request *http.Request, _ *goproxy.ProxyCtx) (*http.Request, *http.Response) {
		if err := r.ensure(request.Context(), request.URL.Path); err != nil {
			return nil, goproxy.NewResponse(request, goproxy.ContentTypeText, http.StatusBadGateway, err.Error())
		}
		request.URL.Scheme, request.URL.Host = "http", r.registry.Listener.Addr().String()
		return request, nil
	})
	r.server = &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	go r.server.Serve(listener) //nolint:errcheck // it ends with close
	return r, nil
}

// proxy is the URL of the proxy.
func (r *registries) proxy() string { return "http://" + r.listener.Addr().String() }

func (r *registries) close() {
	r.server.Close() //nolint:errcheck // nobody waits for an answer any more
	r.registry.Close()
}

// ensure puts an empty image where the path of a request for a tag's manifest says:
// /v2/<name>/manifests/<tag>, see the OCI Distribution Specification, "Pulling manifests".
func (r *registries) ensure(ctx context.Context, path string) error {
	repository, tag, ok := strings.Cut(strings.TrimPrefix(path, "/v2/"), "/manifests/")
	if !ok || strings.Contains(tag, ":") {
		return nil // a blob, or a digest that a tag has led to
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.have[path] {
		return nil
	}
	ref, err := name.NewTag(r.registry.Listener.Addr().String()+"/"+repository+":"+tag, name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(ref, empty.Image, remote.WithContext(ctx)); err != nil {
		return err
	}
	r.have[path] = true
	return nil
}

func discard() *log.Logger { return log.New(io.Discard, "", 0) }
