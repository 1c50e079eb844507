package inject

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// server is an API server with an etcd of its own.
type server struct {
	config *rest.Config
	client *kubernetes.Clientset
	pid    int
}

// start runs the programs that KUBE_APISERVER and ETCD name until the test ends.
func start(tb testing.TB) *server {
	tb.Helper()
	apiserver, etcd := os.Getenv("KUBE_APISERVER"), os.Getenv("ETCD")
	if apiserver == "" || etcd == "" {
		tb.Skip("KUBE_APISERVER and ETCD name no programs: this needs a patched kube-apiserver of v1.33 or later, and etcd; `podenv test --only e2e` has both")
	}
	dir := tb.TempDir()
	client, peer, secure := freePort(tb), freePort(tb), freePort(tb)
	run(tb, dir, etcd, "--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls=http://127.0.0.1:"+client, "--advertise-client-urls=http://127.0.0.1:"+client,
		"--listen-peer-urls=http://127.0.0.1:"+peer, "--initial-advertise-peer-urls=http://127.0.0.1:"+peer,
		"--initial-cluster=default=http://127.0.0.1:"+peer)
	write(tb, filepath.Join(dir, "tokens"), "secret,admin,admin,system:masters\n")
	key := filepath.Join(dir, "key")
	if out, err := exec.Command("openssl", "genrsa", "-out", key, "2048").CombinedOutput(); err != nil {
		tb.Fatalf("openssl: %v\n%s", err, out)
	}
	pid := run(tb, dir, apiserver, "--etcd-servers=http://127.0.0.1:"+client, "--secure-port="+secure, "--bind-address=127.0.0.1",
		"--cert-dir="+filepath.Join(dir, "certs"), "--token-auth-file="+filepath.Join(dir, "tokens"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://podenv.invalid", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount", "--enable-admission-plugins=PodPreset",
		"--feature-gates=PodPreset=true,MutatingAdmissionPolicy=true",
		"--runtime-config=settings.k8s.io/v1alpha1=true,admissionregistration.k8s.io/"+policyVersion()+"=true")
	s := &server{pid: pid, config: &rest.Config{
		Host: "https://127.0.0.1:" + secure, BearerToken: "secret", QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}}
	var err error
	if s.client, err = kubernetes.NewForConfig(s.config); err != nil {
		tb.Fatal(err)
	}
	await(tb, "the API server to be ready", func(ctx context.Context) bool {
		_, err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		if err != nil {
			return false
		}
		_, err = s.client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	return s
}

// policyVersion is that of MutatingAdmissionPolicy which the API server has.
func policyVersion() string {
	if v := os.Getenv("POLICY_VERSION"); v != "" {
		return v
	}
	return "v1"
}

// run starts a program that ends with the test, and returns its process ID.
func run(tb testing.TB, dir, program string, args ...string) int {
	tb.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if text, _ := os.ReadFile(log.Name()); tb.Failed() {
			tb.Logf("%s ended with:\n%s", program, text[max(0, len(text)-4000):])
		}
		_ = log.Close()
	})
	return cmd.Process.Pid
}

// seconds is the processor time of the API server so far: fields 14 and 15 of its stat, in
// hundredths of a second.
func (s *server) seconds(tb testing.TB) float64 {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.pid), "stat"))
	if err != nil {
		tb.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err, err2); err != nil {
		tb.Fatal(err)
	}
	return float64(user+system) / 100
}

func await(tb testing.TB, what string, done func(context.Context) bool) {
	tb.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) { return done(ctx), nil })
	if err != nil {
		tb.Fatalf("waiting for %s: %v", what, err)
	}
}

func freePort(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func write(tb testing.TB, file, text string) {
	tb.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}
