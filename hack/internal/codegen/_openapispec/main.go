// Command openapispec writes api/openapi-spec and api/discovery as an API server publishes them,
// which is what hack/update-openapi-spec.sh of a release does. It is compiled in the tree whose API
// server and etcd it runs. The underscore keeps it out of the packages of this module.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	out := flag.String("out", "", "folder that api/ is written to")
	gates := flag.String("feature-gates", "", "feature gates of the API server")
	flag.Parse()
	if err := run(*out, *gates); err != nil {
		fmt.Fprintln(os.Stderr, "openapispec:", err)
		os.Exit(1)
	}
}

func run(out, gates string) error {
	work := out + ".work"
	if err := os.MkdirAll(work, 0o700); err != nil {
		return err
	}
	etcd, endpoint, err := startEtcd(work)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	s, err := startAPIServer(work, endpoint, gates)
	if err != nil {
		return fmt.Errorf("starting the API server: %w", err)
	}
	return s.publish(out)
}

// publish writes the files of both folders to out.
func (s *server) publish(out string) error {
	// Releases have the aggregated discovery in one version or two.
	aggregated, err := filepath.Glob("api/discovery/aggregated_*.json")
	if err != nil {
		return err
	}
	for _, file := range aggregated {
		version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "aggregated_"), ".json")
		err := s.write("apis", "application/json;g=apidiscovery.k8s.io;v="+version+";as=APIGroupDiscoveryList", filepath.Join(out, file))
		if err != nil {
			return err
		}
	}
	if err := s.write("openapi/v2", anything, filepath.Join(out, "api/openapi-spec/swagger.json")); err != nil {
		return err
	}
	index, err := s.get("openapi/v3", anything)
	if err != nil {
		return err
	}
	paths, _ := index["paths"].(map[string]any)
	if len(paths) == 0 {
		return errors.New("the API server's /openapi/v3 lists no groups")
	}
	for path := range paths {
		name := strings.ReplaceAll(path, "/", "__")
		if err := s.write("openapi/v3/"+path, anything, filepath.Join(out, "api/openapi-spec/v3", name+"_openapi.json")); err != nil {
			return err
		}
		if !strings.HasPrefix(path, "api") {
			continue
		}
		if err := s.write(path, anything, filepath.Join(out, "api/discovery", name+".json")); err != nil {
			return err
		}
	}
	return nil
}

// startEtcd starts an etcd that keeps its data in work.
func startEtcd(work string) (*embed.Etcd, string, error) {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = filepath.Join(work, "etcd"), "error", true
	client, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	peer, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	config.ListenClientUrls = []url.URL{{Scheme: "http", Host: client}}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: peer}}
	config.AdvertiseClientUrls, config.AdvertisePeerUrls = config.ListenClientUrls, config.ListenPeerUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, "http://" + client, nil
	case <-time.After(startTime):
		return nil, "", errors.New("it did not become ready")
	}
}

// startTime is how long etcd and the API server may take until they are ready.
const startTime = 2 * time.Minute

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// server is an API server of this process.
type server struct {
	port, token string
	client      http.Client
}

const (
	advertised = "10.10.10.10"
	anything   = "*/*" // media type
)

// startAPIServer starts an API server with all APIs, and waits until it is ready.
func startAPIServer(work, etcd, gates string) (*server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s := &server{port: port, token: rand.Text()}
	s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	tokens, keyFile := filepath.Join(work, "tokens.csv"), filepath.Join(work, "service-account.key")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(keyutil.WriteKey(keyFile, pem), os.WriteFile(tokens, []byte(s.token+`,admin,admin,system:masters`), 0o600)); err != nil {
		return nil, err
	}
	command := app.NewAPIServerCommand()
	command.SetArgs([]string{
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--advertise-address=" + advertised, "--cert-dir=" + work,
		"--etcd-servers=" + etcd, "--feature-gates=" + gates, "--runtime-config=api/all=true", "--service-cluster-ip-range=10.0.0.0/24",
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + keyFile, "--service-account-signing-key-file=" + keyFile, "--enable-logs-handler=true",
	})
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(context.Background()) }()
	for deadline := time.Now().Add(startTime); ; {
		_, err := s.raw("readyz", anything)
		if err == nil {
			return s, nil
		}
		select {
		case err := <-ended:
			return nil, cmp.Or(err, errors.New("it ended"))
		case <-time.After(200 * time.Millisecond):
			if time.Now().After(deadline) {
				return nil, err
			}
		}
	}
}

// write writes the JSON at path to file as `jq -S .` does, without the version of the server.
func (s *server) write(path, accept, file string) error {
	doc, err := s.get(path, accept)
	if err != nil {
		return err
	}
	if info, ok := doc["info"].(map[string]any); ok {
		info["version"] = "unversioned"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(doc); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func (s *server) get(path, accept string) (map[string]any, error) {
	data, err := s.raw(path, accept)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var doc map[string]any
	err = d.Decode(&doc)
	return doc, err
}

func (s *server) raw(path, accept string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, "https://127.0.0.1:"+s.port+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Accept", accept)
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	// update-openapi-spec.sh has a port of its own.
	data = bytes.ReplaceAll(data, []byte(advertised+":"+s.port), []byte(advertised+":8050"))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET /%s: %s: %s", path, response.Status, data)
	}
	return data, err
}
