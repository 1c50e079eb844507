package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

const (
	// manifests is where the kubelet of a control plane has its static pods.
	manifests = "/etc/kubernetes/manifests/"
	// configHash is the annotation in which a mirror pod has the UID that the
	// kubelet knows the static pod by.
	configHash = "kubernetes.io/config.hash"
	// patience is how long a component that was told to end may take: an API server
	// drains its watches for as long as the kubelet lets it, 30 seconds.
	patience = time.Second
)

// staticSwap swaps a component that is a static pod of the control planes.
type staticSwap struct {
	*swap
	before map[string]string // manifests by node
	after  map[string]string
	uids   map[string]string // of the static pods, by node
	starts map[string]int    // of the containers, by node, before the swap
	pids   map[string]string // of the processes, by node, before the swap
	turned time.Time
	tags   tags
}

func (s *staticSwap) running(ctx context.Context, node Node) (string, error) {
	return (&processes{Cluster: s.Cluster}).only(ctx, node.Name, s.component)
}

func (s *staticSwap) manifest() string { return manifests + s.component + ".yaml" }

func (s *staticSwap) set(ctx context.Context, node Node) (map[string]bool, error) {
	text, err := s.Exec(ctx, node.Name, "cat", s.manifest())
	if err != nil {
		return nil, err
	}
	gates, err := podGates(text, s.component)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.manifest(), err)
	}
	return gates, nil
}

func (s *staticSwap) files() []string { return []string{s.manifest()} }

func (s *staticSwap) put(ctx context.Context) error {
	s.before, s.after = make(map[string]string), make(map[string]string)
	s.uids = make(map[string]string)
	if s.original {
		return s.putOriginal(ctx)
	}
	edit := podEdit{gates: s.gates}
	var err error
	if s.image != "" {
		if edit.image, err = s.putImage(ctx); err != nil {
			return err
		}
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	for _, node := range s.nodes {
		old, err := s.Exec(ctx, node.Name, "cat", s.manifest())
		if err != nil {
			return err
		}
		if edit.uid, err = s.uid(ctx, client, node, old); err != nil {
			return err
		}
		changed, err := editPod(old, s.component, edit)
		if err != nil {
			return fmt.Errorf("%s of node %s: %w", s.manifest(), node.Name, err)
		}
		s.before[node.Name], s.after[node.Name] = old, changed
		s.uids[node.Name] = edit.uid
	}
	return nil
}

// uid is the UID of the static pod on node: what an earlier edit has spelled out in its
// manifest, or what the kubelet has made up. The API shows the pod, but takes its time to
// show it again once a swap has deleted it there.
func (s *staticSwap) uid(ctx context.Context, client kubernetes.Interface, node Node, manifest string) (string, error) {
	if uid := podUID(manifest); uid != "" {
		return uid, nil
	}
	pod, err := s.mirrorPod(ctx, client, node)
	if err != nil {
		return "", err
	}
	return pod.Annotations[configHash], nil
}

// putOriginal needs no API server: one that does not start must have a way back.
func (s *staticSwap) putOriginal(ctx context.Context) error {
	for _, node := range s.nodes {
		old, err := s.Exec(ctx, node.Name, "cat", s.manifest())
		if err != nil {
			return err
		}
		original, err := s.Exec(ctx, node.Name, "cat", beside(s.manifest(), asOriginal))
		if err != nil {
			return fmt.Errorf("what was there before node operations is gone: make the cluster anew with `podenv up`: %w", err)
		}
		s.before[node.Name], s.after[node.Name] = old, original
		// The UID that the edits spell out is the one that the kubelet makes up from the original.
		s.uids[node.Name] = podUID(old)
	}
	return nil
}

// mirrorPod returns the pod that the API shows for the component on node. An earlier
// push deleted it for the kubelet to write anew, which takes a moment.
func (s *staticSwap) mirrorPod(ctx context.Context, client kubernetes.Interface, node Node) (pod *v1.Pod, err error) {
	err = poll(ctx, swapTime, func(ctx context.Context) error {
		pod, err = client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, s.component+"-"+node.Name, metav1.GetOptions{})
		return err
	})
	return pod, err
}

func (s *staticSwap) turn(ctx context.Context) error {
	if s.original {
		return s.turnToOriginal(ctx)
	}
	return s.writeManifests(ctx, s.after)
}

// turnToOriginal puts the manifests of before all operations back, the very files. Nothing
// that an operation had to spell out stays: under a UID that is spelled out, a kubelet
// would not notice what a person changes in a command.
func (s *staticSwap) turnToOriginal(ctx context.Context) error {
	s.mark(ctx)
	return s.each(ctx, func(ctx context.Context, node Node) error {
		if err := s.tagOriginal(ctx, node); err != nil {
			return err
		}
		if err := s.linkOn(ctx, node, beside(s.manifest(), asOriginal), beside(s.manifest(), asNew)); err != nil {
			return err
		}
		if err := s.moveOn(ctx, node, beside(s.manifest(), asNew), s.manifest()); err != nil {
			return err
		}
		// A kubelet holds a container that it has run before in a back-off, of which it
		// knows no more after a restart.
		_, err := s.Exec(ctx, node.Name, "systemctl", "restart", "kubelet")
		return err
	})
}

func (s *staticSwap) back(ctx context.Context) error {
	return s.writeManifests(ctx, s.before)
}

// mark notes what runs before the manifests change.
func (s *staticSwap) mark(ctx context.Context) {
	s.starts, s.pids = make(map[string]int), make(map[string]string)
	for _, node := range s.nodes {
		s.starts[node.Name] = s.started(ctx, node)
		// Where none runs, any is a new one.
		s.pids[node.Name], _ = s.pid(ctx, node.Name, s.component)
	}
	s.turned = time.Now()
}

// writeManifests writes beside and renames: the kubelet passes over files that begin
// with a dot.
func (s *staticSwap) writeManifests(ctx context.Context, texts map[string]string) error {
	s.mark(ctx)
	return s.each(ctx, func(ctx context.Context, node Node) error {
		text, err := s.anew(ctx, node, texts[node.Name])
		if err != nil {
			return fmt.Errorf("%s: %w", s.manifest(), err)
		}
		if err := s.write(ctx, node, strings.NewReader(text), beside(s.manifest(), asNew), "0600"); err != nil {
			return err
		}
		return s.moveOn(ctx, node, beside(s.manifest(), asNew), s.manifest())
	})
}

func (s *staticSwap) serves(ctx context.Context, want state) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	if err := s.await(ctx, client, want, s.runs, s.healthy); err != nil {
		return err
	}
	return s.mirror(ctx, client)
}

// runs checks that the component on node is a new process of the build with the SHA-256
// sum. It ends what the old process does at its end, and gives up on one that crashes.
func (s *staticSwap) runs(ctx context.Context, seen *processes, node Node, sum string) error {
	pid, err := s.pid(ctx, node.Name, s.component)
	if err != nil {
		if n := s.started(ctx, node) - s.starts[node.Name]; n >= crashes {
			return fatal{fmt.Errorf("%s crashes: the kubelet has started it %d times", s.component, n)}
		}
		return err
	}
	if pid == s.pids[node.Name] {
		if time.Since(s.turned) > patience {
			// What becomes of it shows the next time.
			s.Exec(ctx, node.Name, "pkill", "-KILL", "--full", "^"+s.component+" ") //nolint:errcheck // see above
		}
		return fmt.Errorf("the old %s to end", s.component)
	}
	have, err := seen.sum(ctx, node.Name, pid)
	if err != nil {
		return err
	}
	if have != sum {
		return fmt.Errorf("a %s with SHA-256 %s runs, want %s", s.component, have, sum)
	}
	return nil
}

// started is how many times the kubelet has started the container of the component
// on node: each start has a log of its own, called by its number.
func (s *staticSwap) started(ctx context.Context, node Node) int {
	dir := fmt.Sprintf("/var/log/pods/kube-system_%s-%s_%s/%s", s.component, node.Name, s.uids[node.Name], s.component)
	names, err := s.Exec(ctx, node.Name, "ls", dir)
	if err != nil {
		return 0
	}
	return newestLog(names)
}

// newestLog is the greatest number of those that begin the lines of names, plus one.
func newestLog(names string) int {
	n := 0
	for name := range strings.Lines(names) {
		var number int
		if _, err := fmt.Sscanf(name, "%d.log", &number); err == nil {
			n = max(n, number+1)
		}
	}
	return n
}

// healthy checks that the component does its work: that the API server is ready, of which
// etcd is a part, or that another is healthy. There is one of each, so it need not lead.
func (s *staticSwap) healthy(ctx context.Context, client kubernetes.Interface, node Node) error {
	if s.component == "kube-apiserver" || s.component == "etcd" {
		return (&serving{client: client}).apiServer(ctx)
	}
	if _, err := s.get(ctx, node, s.component, "/healthz"); err != nil {
		return fmt.Errorf("%s to be healthy: %w", s.component, err)
	}
	return nil
}

// mirror has the kubelets write the pods that the API shows for their static pods
// anew: they do so for another UID, but not for another image.
func (s *staticSwap) mirror(ctx context.Context, client kubernetes.Interface) error {
	return s.each(ctx, func(ctx context.Context, node Node) error {
		err := client.CoreV1().Pods(metav1.NamespaceSystem).Delete(ctx, s.component+"-"+node.Name,
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
		if apierrors.IsNotFound(err) {
			return nil // the kubelet is about to write it
		}
		return err
	})
}

func (s *staticSwap) tail(ctx context.Context, node Node) string { return s.containerTail(ctx, node) }
