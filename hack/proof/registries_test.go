package proof

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"testing"

	"github.com/elazarl/goproxy"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestRegistriesHaveEveryImageOfEveryHost(t *testing.T) {
	r, err := newRegistries("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	proxy, err := url.Parse(r.proxy())
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(goproxy.CA_CERT)
	client := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: trusted}}
	defer client.CloseIdleConnections()
	for _, image := range []string{"registry.k8s.io/etcd:3.5.24-0", "docker.io/kindest/kindnetd:v1", "registry.k8s.io/etcd:3.5.24-0"} {
		ref, err := name.ParseReference(image)
		if err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(ref, remote.WithTransport(client), remote.WithContext(t.Context()))
		if err != nil {
			t.Fatalf("%s: %v", image, err)
		}
		if layers, err := img.Layers(); err != nil || len(layers) != 0 {
			t.Errorf("%s has %d layers, error %v", image, len(layers), err)
		}
	}
}

func TestRegistriesNeverListenOnAllAddresses(t *testing.T) {
	for _, address := range []string{"", "0.0.0.0", "::", "localhost"} {
		r, err := newRegistries(address)
		if err == nil {
			r.close()
			t.Errorf("the proxy for %q listens on %s", address, r.proxy())
		}
	}
}
