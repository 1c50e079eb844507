package proof

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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"podenv.dev/hack/internal/engine"
)

// serverTarball checks that the tarball has what stock kind build node-image --type file reads.
func serverTarball(c *check) error {
	tarball.need(c)
	list, err := c.command("tar", "--list", "--gzip", "--file", tarball.value).Output()
	if err != nil {
		return err
	}
	files := strings.Fields(list)
	for _, name := range []string{
		"version", "server/bin/kubeadm", "server/bin/kubelet", "server/bin/kubectl", "server/bin/kube-apiserver.tar",
		"server/bin/kube-controller-manager.tar", "server/bin/kube-scheduler.tar", "server/bin/kube-proxy.tar",
	} {
		c.part(name, func() error {
			if !slices.Contains(files, "kubernetes/"+name) {
				return fmt.Errorf("%s does not have kubernetes/%s", tarball.value, name)
			}
			return nil
		})
	}
	return nil
}

// kindBuilds builds a node image of the release from the server tarball with the plain kind command
// line, checks the image, and deletes it.
//
// kind pulls what is not part of a Kubernetes release from registries: etcd, CoreDNS, its own
// network and storage. No registry is available, so a proxy on this host serves empty images
// instead. Everything else is real: kind reads the tarball, installs its binaries and loads its
// images.
func kindBuilds(c *check) (err error) {
	e, version := built.value.Engine, built.value.Build.Version
	base := built.value.Base
	address, err := bridgeAddress(c.ctx, e)
	if err != nil {
		return err
	}
	registries, err := newRegistries(address)
	if err != nil {
		return err
	}
	defer registries.close()

	dir := c.TempDir()
	const baseImage, nodeImage = "podenv/kind-base:proof", "podenv/kind-node:proof"
	defer func() {
		clean, cancel := c.whatever()
		defer cancel()
		err = errors.Join(err, deleteImages(clean, e, nodeImage, baseImage))
	}()
	if err := deleteImages(c.ctx, e, nodeImage, baseImage); err != nil { // what a killed run left
		return err
	}
	c.step.Now("preparing a base image that trusts the proxy")
	for file, content := range map[string]string{
		"ca.pem": string(goproxy.CA_CERT),
		"Dockerfile": "FROM " + base + "\nCOPY ca.pem /etc/ssl/certs/ca-certificates.crt\n" +
			"ENV HTTPS_PROXY=" + registries.proxy() + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	if err := e.Docker(c.ctx, "build", "--tag", baseImage, dir).Log(c.step.Log()).Run(); err != nil {
		return err
	}
	c.step.Now("kind build node-image --type file")
	// kind extracts the tarball below the directory for temporary files.
	kind := c.command("go", "tool", "kind", "build", "node-image", "--type", "file", "--base-image", baseImage, "--image", nodeImage, tarball.value)
	if err := kind.Env("TMPDIR=" + dir).Run(); err != nil {
		return err
	}
	for _, test := range []struct {
		command []string
		want    string
	}{
		{[]string{"cat", "/kind/version"}, version},
		{[]string{"kubelet", "--version"}, "Kubernetes " + version},
		{[]string{"kubeadm", "version", "--output=short"}, version},
	} {
		c.part(strings.Join(test.command, " ")+" in the image", func() error {
			args := append([]string{"run", "--rm", "--entrypoint", test.command[0], nodeImage}, test.command[1:]...)
			saw, err := e.Docker(c.ctx, args...).Log(c.step.Log()).Output()
			if err == nil && strings.TrimSpace(saw) != test.want {
				err = fmt.Errorf("got %q, want %q", saw, test.want)
			}
			return err
		})
	}
	return nil
}

// deleteImages deletes those of images that exist, and their containers: kind does not delete its
// container if it is interrupted.
func deleteImages(ctx context.Context, e *engine.Engine, images ...string) error {
	for _, image := range images {
		if e.Docker(ctx, "image", "inspect", image).Run() != nil {
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

// registries replace all registries. A proxy sends HTTPS requests to any host to a registry on this
// host, which has an empty image for every name.
type registries struct {
	registry *httptest.Server
	listener net.Listener
	server   *http.Server

	mu   sync.Mutex
	have map[string]bool
}

// newRegistries starts the proxy on a free port of one IP address of this host. It refuses the
// unspecified address: only containers may reach the proxy.
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

// proxy returns the URL of the proxy.
func (r *registries) proxy() string { return "http://" + r.listener.Addr().String() }

func (r *registries) close() {
	r.server.Close() //nolint:errcheck // no client waits for a response
	r.registry.Close()
}

// ensure creates an empty image for the path of a request for a tag's manifest,
// /v2/<name>/manifests/<tag>: see the OCI Distribution Specification, "Pulling manifests".
func (r *registries) ensure(ctx context.Context, path string) error {
	repository, tag, ok := strings.Cut(strings.TrimPrefix(path, "/v2/"), "/manifests/")
	if !ok || strings.Contains(tag, ":") {
		return nil // a blob, or the digest of an image that exists
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

// bridgeAddress returns the IPv4 address of the bridge of Docker's default network, at which its
// containers reach this host. A new engine reports no gateway in IPAM.
func bridgeAddress(ctx context.Context, e *engine.Engine) (string, error) {
	name, err := e.Docker(ctx, "network", "inspect", "--format", `{{index .Options "com.docker.network.bridge.name"}}`, "bridge").Output()
	if err != nil {
		return "", err
	}
	var addresses []net.Addr
	bridge, err := net.InterfaceByName(name)
	if err == nil {
		addresses, err = bridge.Addrs()
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil {
			return ip.IP.String(), nil
		}
	}
	return "", errors.Join(fmt.Errorf("the bridge %q of Docker's default network is no interface of this host with an IPv4 address: use an engine of this host", name), err)
}
