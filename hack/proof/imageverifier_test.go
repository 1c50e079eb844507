package proof

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/attest"
	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/image"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/poll"
	"podenv.dev/hack/internal/publish"
	"podenv.dev/hack/internal/run"
)

// verifiedCluster pulls only signed images.
var verifiedCluster = layout.MustFind().UniqueName("podenv-verified")

// imageVerifier publishes the node image and creates a cluster from it, whose node pulls what is signed with a
// key, and refuses an image of which one byte was changed, and one that somebody else has signed.
func imageVerifier(c *check) (err error) {
	address, err := bridgeAddress(c.ctx, built.value.Engine)
	if err != nil {
		return err
	}
	forNodes, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return err
	}
	forHost, err := net.Listen("tcp", "127.0.0.1:0") // the engine takes images from there without a certificate
	if err != nil {
		return err
	}
	dir := c.TempDir()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: registry.New(
		registry.Logger(discard()), registry.WithReferrersSupport(true), registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)))}
	for _, listener := range []net.Listener{forNodes, forHost} {
		go server.Serve(listener) //nolint:errcheck // it ends with Close
	}
	defer server.Close()
	key, err := newKeys(dir, "own")
	if err != nil {
		return err
	}
	foreign, err := newKeys(dir, "foreign")
	if err != nil {
		return err
	}
	image, err := publishNode(c, forHost.Addr().String()+"/kubernetes", dir)
	if err != nil {
		return err
	}
	noGo := c.TempDir() // in PATH before the real one
	if err := os.WriteFile(filepath.Join(noGo, "go"), []byte("#!/bin/sh\necho a published image needs no Go >&2\nexit 1\n"), 0o755); err != nil {
		return err
	}
	err = cli(c, "up", "--name", verifiedCluster, "--image", image, "--recreate").Env("PATH=" + noGo + ":" + os.Getenv("PATH")).Run()
	if err == nil { // its nodes get a program that podenv compiles
		err = cli(c, "up", "--name", verifiedCluster, "--image", image, "--verify-images", filepath.Join(dir, "own.pub"), "--recreate").Run()
	}
	verified, errFind := cluster.Find(c.ctx, repo, built.value.Engine, verifiedCluster)
	defer func() {
		clean, cancel := c.whatever()
		defer cancel()
		if errFind == nil {
			err = errors.Join(err, verified.Delete(clean, c.step))
		}
		err = errors.Join(err, deleteImages(clean, built.value.Engine, image))
	}()
	if err := errors.Join(err, errFind); err != nil {
		return err
	}

	path := forNodes.Addr().String() + "/images"
	for content, key := range map[string]attest.Key{"one": key, "onf": nil, "two": foreign} {
		if err := publishFile(c.ctx, publish.Registry{Path: path, Key: key}, dir, content); err != nil {
			return err
		}
	}
	nodes, err := verified.Nodes(c.ctx)
	if err != nil {
		return err
	}
	node := nodes[0].Name
	if _, err := verified.Exec(c.ctx, node, "sh", "-ec", `d=/etc/containerd/certs.d/$1; mkdir -p "$d"; echo "server = \"http://$1\"" > "$d/hosts.toml"`, "sh", forNodes.Addr().String()); err != nil {
		return err
	}
	client, err := verified.Client()
	if err != nil {
		return err
	}
	for content, want := range map[string]string{"one": "", "onf": "not signed with this key", "two": "not signed with this key"} {
		c.part(content, func() error {
			refused, err := pull(c.ctx, client, node, path+"/file:"+content)
			if err == nil && (want == "" && refused != "" || !strings.Contains(refused, want)) {
				err = fmt.Errorf("refused because %q, want %q", refused, want)
			}
			return err
		})
	}
	return nil
}

// publishNode publishes the node image, signed with the key own in dir, in the folder path of a registry. It returns
// its reference with the digest.
func publishNode(c *check, path, dir string) (ref string, err error) {
	push := func() (state, ref string, err error) {
		out, err := cli(c, "publish", "node", "--registry", path, "--platforms", "linux/"+runtime.GOARCH, "--key", filepath.Join(dir, "own"), "--output", "tsv").Output()
		columns := strings.Split(out, "\t") // reference, platforms, bytes, state, digest
		if err == nil && len(columns) != 5 {
			err = fmt.Errorf("it printed %q", out)
		}
		if err != nil {
			return "", "", err
		}
		return columns[3], path + "/node@" + columns[4], nil
	}
	state, ref, err := push()
	if err == nil && state != "pushed" {
		err = fmt.Errorf("the published image is %q", state)
	}
	if err != nil {
		return "", err
	}
	c.part("published again, nothing is sent", func() error {
		again, _, err := push()
		if err == nil && again != "exists" {
			err = fmt.Errorf("the image is %q", again)
		}
		return err
	})
	c.part("no cluster from an image that somebody else has signed", func() error {
		err := cli(c, "up", "--name", verifiedCluster, "--image", ref, "--verify-images", filepath.Join(dir, "foreign.pub")).Run()
		if err == nil || !strings.Contains(err.Error(), "not signed with this key") {
			return fmt.Errorf("up ended with %v", err)
		}
		return nil
	})
	return ref, nil
}

// cli prepares a command of podenv on the series.
func cli(c *check, args ...string) *run.Cmd {
	return c.command(*podenv, append(args, "--plain", "--series", steps.Series.Name)...)
}

// pull has the kubelet of node pull an image, and returns why that failed; it is empty if it did not.
func pull(ctx context.Context, client kubernetes.Interface, node, ref string) (refused string, err error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "pull-"}, Spec: corev1.PodSpec{
		NodeName: node, RestartPolicy: corev1.RestartPolicyNever, HostNetwork: true,
		Containers: []corev1.Container{{Name: "file", Image: ref, ImagePullPolicy: corev1.PullAlways, Command: []string{"/file"}}},
	}}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	if pod, err = pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return refused, poll.Until(ctx, 2*time.Minute, func(ctx context.Context) error {
		if pod, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, status := range pod.Status.ContainerStatuses {
			if waiting := status.State.Waiting; waiting != nil && waiting.Reason == "ErrImagePull" {
				refused = waiting.Message
				return nil
			}
			if status.State.Terminated != nil { // the file is no program
				return nil
			}
		}
		return fmt.Errorf("pod %s has pulled nothing: %v", pod.Name, pod.Status.ContainerStatuses)
	})
}

// publishFile publishes the image file:<content>, which has a file with this content.
func publishFile(ctx context.Context, r publish.Registry, dir, content string) error {
	img, err := image.Stored{Architecture: runtime.GOARCH, Key: content, Layers: []func(io.Writer) error{
		image.WriteTar([]image.File{{Path: "/file", Mode: 0o644, Data: []byte(content)}}),
	}}.Write(ctx, dir, content)
	if err != nil {
		return err
	}
	_, err = r.Push(ctx, []publish.Image{{Name: "file", Tag: content, Platforms: map[string]v1.Image{"linux/" + runtime.GOARCH: img}}}, nil)
	return err
}

// newKeys writes a key pair to the files name and name.pub in dir, and returns the private one.
func newKeys(dir, name string) (attest.Key, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	publicDER, errPublic := x509.MarshalPKIXPublicKey(public)
	file := filepath.Join(dir, name)
	if err := errors.Join(err, errPublic,
		os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600),
		os.WriteFile(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER}), 0o600)); err != nil {
		return nil, err
	}
	return attest.LoadKey(file)
}
