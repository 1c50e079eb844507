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
	"sigs.k8s.io/yaml"
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

// healthz is where the components that elect a leader say that they are healthy:
// on the node's loopback interface only, see kubeadm's manifests.
var healthz = map[string]string{
	"kube-controller-manager": "https://127.0.0.1:10257",
	"kube-scheduler":          "https://127.0.0.1:10259",
}

// staticSwap swaps a component that is a static pod of the control planes.
type staticSwap struct {
	*push
	before map[string]string // manifests by node
	after  map[string]string
	uids   map[string]string // of the static pods, by node
	starts map[string]int    // of the containers, by node, before the swap
	leader string            // who held the component's lease before
	turned time.Time
}

func (s *staticSwap) running(ctx context.Context, node Node) (string, error) {
	return (&processes{Cluster: s.Cluster}).only(ctx, node.Name, s.component)
}

func (s *staticSwap) manifest() string { return manifests + s.component + ".yaml" }

func (s *staticSwap) put(ctx context.Context) error {
	image, err := s.putImage(ctx)
	if err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	s.before, s.after = make(map[string]string), make(map[string]string)
	s.uids = make(map[string]string)
	for _, node := range s.nodes {
		pod, err := s.mirrorPod(ctx, client, node)
		if err != nil {
			return err
		}
		old, err := s.Exec(ctx, node.Name, "cat", s.manifest())
		if err != nil {
			return err
		}
		changed, err := setImage(old, pod.Annotations[configHash], s.component, image)
		if err != nil {
			return fmt.Errorf("%s of node %s: %w", s.manifest(), node.Name, err)
		}
		s.before[node.Name], s.after[node.Name] = old, changed
		s.uids[node.Name] = pod.Annotations[configHash]
	}
	s.leader, err = s.holder(ctx, client)
	return err
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

func (s *staticSwap) turn(ctx context.Context) error { return s.writeManifests(ctx, s.after) }

func (s *staticSwap) back(ctx context.Context) error {
	// The new build may have led for a moment. If nobody can be asked, whoever leads next will do.
	if client, err := s.client(); err == nil {
		s.leader, _ = s.holder(ctx, client)
	}
	return s.writeManifests(ctx, s.before)
}

// writeManifests writes beside and renames: the kubelet passes over files that
// begin with a dot.
func (s *staticSwap) writeManifests(ctx context.Context, texts map[string]string) error {
	hidden := manifests + "." + s.component + ".yaml"
	starts := make(map[string]int)
	for _, node := range s.nodes {
		starts[node.Name] = s.started(ctx, node)
	}
	s.starts, s.turned = starts, time.Now()
	return s.each(ctx, func(ctx context.Context, node Node) error {
		if err := s.write(ctx, node, strings.NewReader(texts[node.Name]+"\n"), hidden, "0600"); err != nil {
			return err
		}
		_, err := s.Exec(ctx, node.Name, "mv", "--force", hidden, s.manifest())
		return err
	})
}

func (s *staticSwap) serves(ctx context.Context, sum string) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	err = s.each(ctx, func(ctx context.Context, node Node) error {
		seen := &processes{Cluster: s.Cluster}
		return poll(ctx, swapTime, func(ctx context.Context) error {
			if err := s.runs(ctx, seen, node, sum); err != nil {
				return err
			}
			return s.healthy(ctx, client, node)
		})
	})
	if err != nil {
		return err
	}
	return s.mirror(ctx, client)
}

// runs checks that the component on node is the build with the SHA-256 sum. It ends
// what another build's process does at its end, and gives up on one that crashes.
func (s *staticSwap) runs(ctx context.Context, seen *processes, node Node, sum string) error {
	have, err := seen.only(ctx, node.Name, s.component)
	switch {
	case err != nil:
		if n := s.started(ctx, node) - s.starts[node.Name]; n >= crashes {
			return fatal{fmt.Errorf("%s crashes: the kubelet has started it %d times", s.component, n)}
		}
		return err
	case have == sum:
		return nil
	case time.Since(s.turned) > patience:
		// What becomes of it shows the next time.
		s.Exec(ctx, node.Name, "pkill", "-KILL", "--full", "^"+s.component+" ") //nolint:errcheck // see above
	}
	return fmt.Errorf("a %s with SHA-256 %s runs, want %s", s.component, have, sum)
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

// healthy checks that the component does its work: that the API server is ready,
// or that another is healthy and leads.
func (s *staticSwap) healthy(ctx context.Context, client kubernetes.Interface, node Node) error {
	address, elects := healthz[s.component]
	if !elects {
		return (&serving{client: client}).apiServer(ctx)
	}
	_, err := s.Exec(ctx, node.Name, "kubectl", "get", "--raw=/healthz", "--server="+address, "--insecure-skip-tls-verify")
	if err != nil {
		return fmt.Errorf("%s to be healthy: %w", s.component, err)
	}
	return s.leads(ctx, client)
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
func (s *staticSwap) clean(context.Context) error                { return nil }

// setImage returns the manifest of a static pod with another image for one container,
// its UID spelled out, and all else as it was. The kubelet makes up the UID from the
// manifest; were it another one, the kubelet would take the old pod down in full and
// look for the new one 10 to 15 seconds later. Under the same UID it only restarts the
// container.
func setImage(manifest, uid, container, image string) (string, error) {
	var pod map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		return "", err
	}
	metadata, ok := pod["metadata"].(map[string]any)
	if !ok || uid == "" {
		return "", fmt.Errorf("the pod has no metadata, or no UID is known for it")
	}
	metadata["uid"] = uid
	spec, _ := pod["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok && c["name"] == container {
			c["image"] = image
			out, err := yaml.Marshal(pod)
			return string(out), err
		}
	}
	return "", fmt.Errorf("the pod has no container %s", container)
}
