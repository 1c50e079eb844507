package node

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"podenv.dev/hack/internal/digest"
)

// broken is a component that says why it does not start.
const broken = "#!/bin/sh\necho this build is broken >&2\nexit 1\n"

func (l *live) pushKubelet(t *testing.T) {
	original := l.fetch(t, binDir+"kubelet")
	l.push(t, "kubelet", variant(t, original), "")
	if s := l.state(t, worker(), "kubelet"); !s.Changed {
		t.Errorf("a kubelet that was pushed is %+v", s)
	}
	l.undo(t, worker())
	if sums := l.runningSums(t, "kubelet"); sums[worker()] != mustSum(t, original) || sums[controlPlane()] == sums[worker()] {
		t.Errorf("after undo on the worker the nodes run %v", sums)
	}
	l.push(t, "kubelet", original, "")
	l.checkUnchanged(t)
}

// pushBrokenKubelet has systemd restart the broken build all the time, and notes which files each start finds: those of
// before or those of the push, and no mix of them.
func (l *live) pushBrokenKubelet(t *testing.T) {
	const dropIn = "/etc/systemd/system/kubelet.service.d/20-test.conf"
	l.exec(t, worker(), "sh", "-ec", "printf '[Service]\nRestartSec=10ms\n"+
		"ExecStartPre=/bin/sh -c \"stat --format=%%%%i /usr/bin/kubelet "+kubeletFlags+" | xargs >> /run/starts\"\n' > "+dropIn+
		"; systemctl daemon-reload; systemctl restart kubelet")
	before := l.fetch(t, binDir+"kubelet")
	err := Push(l.ctx, l.cluster, l.build(t, "kubelet", write(t, []byte(broken)), ""), nil)
	if err == nil || !strings.Contains(err.Error(), "this build is broken") || !strings.Contains(err.Error(), "the old build is back") {
		t.Fatalf("Push: %v", err)
	}
	if found := l.exec(t, worker(), "sort", "-u", "/run/starts"); strings.Count(found, "\n") != 1 {
		t.Errorf("the kubelets started with these files: %s", found)
	}
	l.exec(t, worker(), "sh", "-ec", "rm "+dropIn+"; systemctl daemon-reload; systemctl restart kubelet")
	l.checkSum(t, "kubelet", mustSum(t, before))
	l.checkUnchanged(t)
}

func (l *live) pushKubectl(t *testing.T) {
	original := l.fetch(t, binDir+"kubectl")
	l.push(t, "kubectl", variant(t, original), "")
	for _, node := range []string{worker(), controlPlane()} {
		l.undo(t, node)
	}
	l.checkSum(t, "kubectl", mustSum(t, original))
	l.checkUnchanged(t)
}

// pushPod returns a test that pushes another build of a component that runs as a pod.
func (l *live) pushPod(component string) func(*testing.T) {
	return func(t *testing.T) {
		binary, path, image := l.fetchImage(t, component)
		other := variant(t, binary)
		l.push(t, component, other, l.image(t, image, path, other))
		if err := l.cluster.WaitServing(l.ctx, 3*time.Minute, nil); err != nil {
			t.Error(err)
		}
	}
}

func (l *live) pushBrokenAPIServer(t *testing.T) {
	before := l.runningSums(t, "kube-apiserver")[controlPlane()]
	_, path, image := l.fetchImage(t, "kube-apiserver")
	bad := write(t, []byte("not an executable"))
	err := Push(l.ctx, l.cluster, l.build(t, "kube-apiserver", bad, l.image(t, image, path, bad)), nil)
	if err == nil || !strings.Contains(err.Error(), "the old build is back") {
		t.Fatalf("Push: %v", err)
	}
	t.Logf("it says: %v", err)
	l.checkSum(t, "kube-apiserver", before)
	if err := l.cluster.WaitServing(l.ctx, 3*time.Minute, nil); err != nil {
		t.Error(err)
	}
}

func (l *live) undoPushes(t *testing.T) {
	undone, changed, err := Undo(l.ctx, l.cluster, controlPlane(), nil)
	if err != nil || !changed {
		t.Fatalf("changed %t, %v", changed, err)
	}
	t.Logf("undone: %v", undone)
	l.checkUnchanged(t)
}

// build returns a build without a version.
func (l *live) build(t *testing.T, component, binary, image string) Build {
	t.Helper()
	b, err := NewBuild(component, binary, image, "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// push pushes a build, and checks that every node runs it.
func (l *live) push(t *testing.T, component, binary, image string) {
	t.Helper()
	timed(t, func(t *testing.T) {
		if err := Push(l.ctx, l.cluster, l.build(t, component, binary, image), nil); err != nil {
			t.Fatal(err)
		}
	})
	l.checkSum(t, component, mustSum(t, binary))
}

// checkSum checks that every node that has the component runs the build with the SHA-256 sum.
func (l *live) checkSum(t *testing.T, component, sum string) {
	t.Helper()
	for node, got := range l.runningSums(t, component) {
		if got != sum {
			t.Errorf("%s runs the build %s of %s, want %s", node, got, component, sum)
		}
	}
}

// runningSums returns the SHA-256 sum of the component on each node that has it.
func (l *live) runningSums(t *testing.T, component string) map[string]string {
	t.Helper()
	nodes, err := l.cluster.Nodes(l.ctx)
	if err != nil {
		t.Fatal(err)
	}
	client, err := l.cluster.Client()
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	for _, node := range nodes {
		if checkRuns(node, component) != nil {
			continue
		}
		c, err := (&target{Cluster: l.cluster, client: client, node: node.Name, name: component}).component()
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.state(l.ctx)
		if err != nil {
			t.Fatal(err)
		}
		sums[node.Name] = s.SHA256
	}
	return sums
}

// exec runs a command on a node, and returns what it prints.
func (l *live) exec(t *testing.T, node string, args ...string) string {
	t.Helper()
	out, err := l.cluster.Exec(l.ctx, node, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fetch copies a file from the control plane and returns its local path.
func (l *live) fetch(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := l.engine.Docker(l.ctx, "cp", controlPlane()+":"+path, out).Run(); err != nil {
		t.Fatal(err)
	}
	return out
}

// fetchImage makes an image from the files of a component's container on the control plane.
// It returns a local copy of the executable, the executable's path in the image, and the
// image. The node's own copy of the image may have lost its layers.
func (l *live) fetchImage(t *testing.T, component string) (binary, path string, image v1.Image) {
	t.Helper()
	on := func(args ...string) string { t.Helper(); return l.exec(t, controlPlane(), args...) }
	pid, err := (&target{Cluster: l.cluster, node: controlPlane(), name: component}).pid(l.ctx)
	if err != nil {
		t.Fatal(err)
	}
	process := "/proc/" + pid
	path = on("readlink", process+"/exe")
	const files = "/kind/files.tar"
	on("tar", "--create", "--file="+files, "--one-file-system", "--directory="+process+"/root", ".")
	layer, err := tarball.LayerFromFile(l.fetch(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(empty.Image, layer); err != nil {
		t.Fatal(err)
	}
	config := v1.Config{}
	for variable := range strings.SplitSeq(on("cat", process+"/environ"), "\x00") {
		if strings.HasPrefix(variable, "PATH=") {
			config.Env = []string{variable}
		}
	}
	if image, err = mutate.Config(image, config); err != nil {
		t.Fatal(err)
	}
	return extract(t, image, path), path, image
}

// extract writes the file at path in image to a local file.
func extract(t *testing.T, image v1.Image, path string) string {
	t.Helper()
	files := mutate.Extract(image)
	defer files.Close()
	for archive := tar.NewReader(files); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("looking for %s in the image: %v", path, err)
		}
		if filepath.Join("/", header.Name) == path {
			content, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return write(t, content)
		}
	}
}

// image writes the archive of an image like base, with another executable at path.
func (l *live) image(t *testing.T, base v1.Image, path, binary string) string {
	t.Helper()
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(path, "/"), Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	top, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(base, top)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "image.tar")
	tag, err := name.NewTag("registry.k8s.io/" + filepath.Base(path) + ":test")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(out, tag, image); err != nil {
		t.Fatal(err)
	}
	return out
}

// variant makes another build of an executable: bytes after an ELF file's sections change only
// its checksum.
func variant(t *testing.T, binary string) string {
	t.Helper()
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, append(content, '\n'))
}

// write writes an executable and returns its path.
func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustSum(t *testing.T, path string) string {
	t.Helper()
	sum, err := digest.File(path)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
