package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// apiServer is a server with TLS that says its name.
type apiServer struct {
	*httptest.Server
	status atomic.Int32 // of /readyz; 0 for no answer
}

func newAPIServer(t *testing.T, name string) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" && s.status.Load() == 0 {
			<-r.Context().Done()
			return
		}
		if r.URL.Path == "/readyz" {
			w.WriteHeader(int(s.status.Load()))
		}
		fmt.Fprint(w, name)
	}))
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) host() string { return s.Listener.Addr().String() }

// configure writes the files as kind does: each beside, and renamed.
func configure(t *testing.T, dir string, port int, servers ...string) {
	t.Helper()
	lds := fmt.Sprintf(`
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: listener_apiserver
  address:
    socket_address:
      address: "127.0.0.1"
      port_value: %d
  filter_chains: []
`, port)
	cds := `
resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: kube_apiservers
  connect_timeout: 0.25s
  load_assignment:
    cluster_name: kube_apiservers
    endpoints:
    - lb_endpoints:
`
	for _, s := range servers {
		host, port, _ := net.SplitHostPort(s)
		cds += fmt.Sprintf("      - endpoint:\n          address:\n            socket_address:\n              address: %s\n              port_value: %s\n", host, port)
	}
	for name, text := range map[string]string{"cds.yaml": cds, "lds.yaml": lds} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file+".tmp", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".tmp", file); err != nil {
			t.Fatal(err)
		}
	}
}

// start runs a balancer before servers, and returns its folder and port.
func start(t *testing.T, servers ...string) (dir string, port int) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	dir = t.TempDir()
	for _, name := range []string{"cds.yaml", "lds.yaml"} { // as kind starts Envoy
		if err := os.WriteFile(filepath.Join(dir, name), []byte("resources: []"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	ctx := t.Context()
	go func() { done <- run(ctx, dir) }()
	t.Cleanup(func() { <-done })
	time.Sleep(interval) // it reads the empty files first
	configure(t, dir, port, servers...)
	return dir, port
}

// ask returns which server answers over a new connection.
func ask(port int) (string, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := client.Get("https://127.0.0.1:" + strconv.Itoa(port))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// await waits until the servers called names, and no others, answer in turn.
func await(t *testing.T, port int, limit time.Duration, names ...string) {
	t.Helper()
	want, last := strings.Join(names, " "), ""
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		seen := map[string]bool{}
		failed := false
		for range 4 * len(names) {
			name, err := ask(port)
			if err != nil {
				failed, last = true, err.Error()
				break
			}
			seen[name] = true
		}
		var have []string
		for _, name := range []string{"a", "b", "c"} {
			if seen[name] {
				have = append(have, name)
			}
		}
		if !failed {
			if last = strings.Join(have, " "); last == want {
				return
			}
		}
	}
	t.Fatalf("within %s: %q answer, want %q", limit, last, want)
}

func TestAllServersTakeTurns(t *testing.T) {
	a, b, c := newAPIServer(t, "a"), newAPIServer(t, "b"), newAPIServer(t, "c")
	_, port := start(t, a.host(), b.host(), c.host())
	await(t, port, 10*time.Second, "a", "b", "c")
}

func TestNoRequestFailsWhenAServerIsGone(t *testing.T) {
	a, b, c := newAPIServer(t, "a"), newAPIServer(t, "b"), newAPIServer(t, "c")
	_, port := start(t, a.host(), b.host(), c.host())
	await(t, port, 10*time.Second, "a", "b", "c")
	b.Close()
	for range 30 {
		if name, err := ask(port); err != nil || name == "b" {
			t.Fatalf("%q answers, error %v", name, err)
		}
	}
}

func TestAServerThatIsNotReadyIsNotChosen(t *testing.T) {
	a, b := newAPIServer(t, "a"), newAPIServer(t, "b")
	_, port := start(t, a.host(), b.host())
	await(t, port, 10*time.Second, "a", "b")
	b.status.Store(http.StatusInternalServerError)
	await(t, port, time.Second+timeout, "a")
	b.status.Store(http.StatusOK)
	await(t, port, 10*time.Second, "a", "b")
}

func TestWithoutAReadyServerAnyIsTried(t *testing.T) {
	a := newAPIServer(t, "a")
	a.status.Store(http.StatusInternalServerError)
	_, port := start(t, a.host())
	await(t, port, 10*time.Second, "a")
}

// A process that is stopped, or a host that is cut off, takes connections or leaves them open.
func TestConnectionsToASilentServerAreClosed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, port := start(t, silent.Addr().String())
	var client net.Conn
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if client, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	defer client.Close()
	if err := client.SetReadDeadline(time.Now().Add(3 * patience * (interval + timeout))); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

func TestASilentServerThatAnswersAgainIsChosen(t *testing.T) {
	a, b := newAPIServer(t, "a"), newAPIServer(t, "b")
	_, port := start(t, a.host(), b.host())
	await(t, port, 10*time.Second, "a", "b")
	b.status.Store(0)
	time.Sleep((patience + 1) * (interval + timeout)) // its connections are closed
	await(t, port, time.Second, "a")
	b.status.Store(http.StatusOK)
	await(t, port, 10*time.Second, "a", "b")
}

// exhausted is a listener that first has too many open files.
type exhausted struct {
	net.Listener
	failures atomic.Int32
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestConnectionsAreTakenAgainAfterAnError(t *testing.T) {
	a := newAPIServer(t, "a")
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &exhausted{Listener: inner}
	l.failures.Store(2)
	var b balancer
	b.follow(t.Context(), []string{a.host()})
	ended := make(chan struct{})
	go func() { b.serve(l); close(ended) }()
	if name, err := ask(inner.Addr().(*net.TCPAddr).Port); name != "a" {
		t.Errorf("%q answers, error %v", name, err)
	}
	l.Close()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("it goes on after the listener is closed")
	}
}

func TestServersFollowTheFiles(t *testing.T) {
	a, b, c := newAPIServer(t, "a"), newAPIServer(t, "b"), newAPIServer(t, "c")
	dir, port := start(t, a.host(), b.host())
	await(t, port, 10*time.Second, "a", "b")
	configure(t, dir, port, b.host(), c.host())
	await(t, port, 10*time.Second, "b", "c")
	if err := os.WriteFile(filepath.Join(dir, "cds.yaml"), []byte("\tno YAML"), 0o666); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * interval) // it reads that
	await(t, port, time.Second, "b", "c")
}
