package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/poll"
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

// staticPod is a component of the control plane that the kubelet runs from a manifest.
type staticPod struct {
	*target
	original      bool   // the change puts the manifest from before all operations back
	before, after string // manifests
	uid           string // of the pod
	// What was before the manifest changed: how often the container was started, and which
	// process ran.
	starts int
	oldPID string
	turned time.Time
	// tags are names that were given to images on the node, by this change or an earlier
	// one, the newest last.
	tags []string
}

func (p *staticPod) manifest() string { return manifests + p.name + ".yaml" }
func (p *staticPod) files() []string  { return []string{p.manifest()} }

func (p *staticPod) state(ctx context.Context) (s cluster.State, err error) {
	if p.before, err = p.exec(ctx, "cat", p.manifest()); err != nil {
		return s, err
	}
	if s.Gates, err = podGates(p.before, p.name); err != nil {
		return s, fmt.Errorf("%s: %w", p.manifest(), err)
	}
	pid, err := p.pid(ctx)
	if err == nil {
		s.SHA256, err = p.sumProcess(ctx, pid)
	}
	if err != nil {
		return s, ctx.Err() // whatever is wrong shows when the change is made
	}
	if p.name != "etcd" {
		if r, err := p.read(ctx); err == nil {
			s.Version = r.version
		}
	}
	return s, nil
}

func (p *staticPod) stage(ctx context.Context, ch change, _ cluster.State) (err error) {
	if ch.original {
		return p.stageOriginalManifest(ctx)
	}
	edit := podEdit{gates: ch.gates}
	switch {
	case ch.binary != "" && ch.image == "":
		return fmt.Errorf("%s runs as a pod: swapping it takes an image", p.name)
	case ch.image != "":
		if edit.image, err = p.loadImage(ctx, ch.image); err != nil {
			return err
		}
	}
	// The UID is what an earlier edit has spelled out, or what the kubelet has made up. The
	// API shows the latter, but takes its time to show it again once a change has deleted
	// the pod there.
	if p.uid = podUID(p.before); p.uid == "" {
		pod, err := p.mirrorPod(ctx)
		if err != nil {
			return err
		}
		p.uid = pod.Annotations[configHash]
	}
	edit.uid = p.uid
	if p.after, err = editPod(p.before, p.name, edit); err != nil {
		return fmt.Errorf("%s: %w", p.manifest(), err)
	}
	return nil
}

// stageOriginalManifest needs no API server: it also restores one that does not start.
func (p *staticPod) stageOriginalManifest(ctx context.Context) (err error) {
	p.original = true
	if err := p.target.stageOriginals(ctx, p.manifest()); err != nil {
		return err
	}
	// The UID that the edits spell out is the one that the kubelet makes up from the original.
	p.uid = podUID(p.before)
	p.after, err = p.exec(ctx, "cat", copyPath(p.manifest(), originalSuffix))
	return err
}

// mirrorPod returns the pod that the API shows for the component. An earlier change deleted
// it for the kubelet to write again, which takes a moment.
func (p *staticPod) mirrorPod(ctx context.Context) (pod *v1.Pod, err error) {
	err = poll.Until(ctx, serveTime, func(ctx context.Context) error {
		pod, err = p.client.CoreV1().Pods(metav1.NamespaceSystem).Get(ctx, p.name+"-"+p.node, metav1.GetOptions{})
		return err
	})
	return pod, err
}

// apply writes the manifest. It restores the original as the same file, without the UID that
// operations add: under an explicit UID, a kubelet would not notice when somebody edits the
// command.
func (p *staticPod) apply(ctx context.Context) error {
	if !p.original {
		return p.writeManifest(ctx, p.after)
	}
	p.look(ctx)
	if err := p.tagOriginal(ctx); err != nil {
		return err
	}
	if err := p.replace(ctx, newSuffix, p.manifest()); err != nil {
		return err
	}
	// A kubelet holds a container that it has run before in a back-off, which it does not
	// remember after a restart.
	_, err := p.exec(ctx, "systemctl", "restart", "kubelet")
	return err
}

func (p *staticPod) revert(ctx context.Context) error { return p.writeManifest(ctx, p.before) }

// look remembers what runs before the manifest changes.
func (p *staticPod) look(ctx context.Context) {
	p.starts = p.started(ctx)
	p.oldPID, _ = p.pid(ctx) // if none runs, any is a new one
	p.turned = time.Now()
}

// writeManifest writes beside and renames: the kubelet ignores files that begin with a dot.
func (p *staticPod) writeManifest(ctx context.Context, text string) error {
	p.look(ctx)
	text, err := p.renewImage(ctx, text)
	if err != nil {
		return fmt.Errorf("%s: %w", p.manifest(), err)
	}
	if err := p.write(ctx, strings.NewReader(text), copyPath(p.manifest(), newSuffix), "0600"); err != nil {
		return err
	}
	return p.replace(ctx, newSuffix, p.manifest())
}

func (p *staticPod) waitServing(ctx context.Context, want cluster.State) error {
	if err := p.await(ctx, want, p.runs, p.healthy); err != nil {
		return err
	}
	// The kubelet writes the pod that the API shows for its static pod again if it has
	// another UID, but not if it has another image.
	err := p.client.CoreV1().Pods(metav1.NamespaceSystem).Delete(ctx, p.name+"-"+p.node,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if apierrors.IsNotFound(err) {
		return nil // the kubelet is about to write it
	}
	return err
}

// runs checks that the component is a new process of the build with the SHA-256 sum. It
// ends what the old process does at its end, and gives up on one that crashes.
func (p *staticPod) runs(ctx context.Context, sum string) error {
	pid, err := p.pid(ctx)
	if err != nil {
		if n := p.started(ctx) - p.starts; n >= crashes {
			return poll.Stop(fmt.Errorf("%s crashes: the kubelet has started it %d times", p.name, n))
		}
		return err
	}
	if pid == p.oldPID {
		if time.Since(p.turned) > patience {
			// Whether it ends shows the next time.
			p.exec(ctx, "pkill", "-KILL", "--full", "^"+p.name+" ") //nolint:errcheck // see above
		}
		return fmt.Errorf("the old %s to end", p.name)
	}
	return p.isBuild(ctx, pid, sum)
}

// started is how many times the kubelet has started the container of the component: each
// start has a log of its own, called by its number.
func (p *staticPod) started(ctx context.Context) int {
	names, err := p.exec(ctx, "ls", fmt.Sprintf("/var/log/pods/kube-system_%s-%s_%s/%[1]s", p.name, p.node, p.uid))
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
// etcd is a part, or that another is healthy. Each is the only one, so it need not lead.
func (p *staticPod) healthy(ctx context.Context) (err error) {
	if p.name == "kube-apiserver" || p.name == "etcd" {
		_, err = p.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	} else {
		_, err = p.get(ctx, "/healthz")
	}
	if err != nil {
		return fmt.Errorf("%s to be healthy: %w", p.name, err)
	}
	return nil
}

// tagTime is the end of a tag that renewImage has made.
var tagTime = regexp.MustCompile(`-at[0-9]+$`)

// renewImage returns the manifest with another name for the image that it has. For the
// kubelet a container is another one only if its image or its own name is: it would not
// notice another command, and it would hold a container that it has run before, or that has
// been ended beside it, in a back-off of up to five minutes.
func (p *staticPod) renewImage(ctx context.Context, manifest string) (string, error) {
	if p.uid == "" {
		return manifest, nil
	}
	image, err := podImage(manifest, p.name)
	if err != nil {
		return "", err
	}
	// The name without a time stays on the node. That of an original may be gone: an
	// operation since has replaced it.
	lasting := tagTime.ReplaceAllString(image, "")
	name := fmt.Sprintf("%s-at%d", lasting, p.turned.UnixMilli())
	if err := p.tag(ctx, lasting, name); err != nil {
		return "", err
	}
	if lasting != image {
		p.tags = append(p.tags, image)
	}
	p.tags = append(p.tags, name)
	return editPod(manifest, p.name, podEdit{uid: p.uid, image: name})
}

// tagOriginal makes sure that the image which the original names is on the node: a change
// that was taken back has given it a name with a time, which an operation since has removed.
func (p *staticPod) tagOriginal(ctx context.Context) error {
	image, err := podImage(p.after, p.name)
	if err != nil {
		return fmt.Errorf("%s: %w", copyPath(p.manifest(), originalSuffix), err)
	}
	if lasting := tagTime.ReplaceAllString(image, ""); lasting != image {
		return p.tag(ctx, lasting, image)
	}
	return nil
}

// tag gives an image on the node another name.
func (p *staticPod) tag(ctx context.Context, image, name string) error {
	_, err := p.exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)
	return err
}

// cleanUp also removes the image tags that the manifest no longer uses.
func (p *staticPod) cleanUp(ctx context.Context) error {
	if err := p.removeCopies(ctx, p.files(), newSuffix, oldSuffix); err != nil {
		return err
	}
	current, err := p.exec(ctx, "cat", p.manifest())
	if err != nil {
		return err
	}
	image, err := podImage(current, p.name)
	if err != nil {
		return err
	}
	p.tags = slices.DeleteFunc(p.tags, func(tag string) bool { return tag == image })
	if len(p.tags) == 0 {
		return nil
	}
	_, err = p.exec(ctx, append([]string{"ctr", "--namespace=k8s.io", "images", "rm"}, p.tags...)...)
	return err
}
