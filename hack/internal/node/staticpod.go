package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/poll"
)

const (
	// manifests is the folder of a control plane's static pods.
	manifests = "/etc/kubernetes/manifests/"
	// killDelay is how long a component that is being terminated may take. An API server would
	// drain its watches for as long as the kubelet lets it, 30 seconds.
	killDelay = time.Second
)

// staticPod changes a component of the control plane that the kubelet runs from a manifest.
type staticPod struct {
	*target
	// What stage reads and works out.
	original                 bool // the change restores the manifest from before the first operation
	oldManifest, newManifest string
	uid                      string // of the pod

	before process  // that the change is to end
	tags   []string // that the image had on the node, of this change and the one before
}

// process is that of the component at one time.
type process struct {
	seen   time.Time
	pid    string // "" for none
	starts int    // how often the kubelet has started the container
}

func (p *staticPod) manifest() string { return manifests + p.name + ".yaml" }
func (p *staticPod) files() []string  { return []string{p.manifest()} }

func (p *staticPod) state(ctx context.Context) (s cluster.State, err error) {
	if p.oldManifest, err = p.exec(ctx, "cat", p.manifest()); err != nil {
		return s, err
	}
	if s.Gates, err = podGates(p.oldManifest, p.name); err != nil {
		return s, fmt.Errorf("%s: %w", p.manifest(), err)
	}
	pid, err := p.pid(ctx)
	if err == nil {
		s.SHA256, err = p.processSum(ctx, pid)
	}
	if err != nil {
		return s, ctx.Err() // a component that is down can be changed again
	}
	if p.name != "etcd" {
		if r, err := p.runningState(ctx); err == nil {
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
	// The UID is in the manifest since an earlier edit, or was computed by the kubelet.
	if p.uid = podUID(p.oldManifest); p.uid == "" {
		if p.uid, err = p.loggedUID(ctx); err != nil {
			return err
		}
	}
	edit.uid = p.uid
	if p.newManifest, err = editPod(p.oldManifest, p.name, edit); err != nil {
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
	// The edits have the UID that the kubelet computes from the original.
	p.uid = podUID(p.oldManifest)
	p.newManifest, err = p.exec(ctx, "cat", copyPath(p.manifest(), originalSuffix))
	return err
}

// loggedUID returns the UID under which the kubelet runs the pod: that in the name of its newest folder of
// logs. The mirror pod has it too, but the kubelet can take 90 seconds to create it again after an earlier
// change has deleted it.
func (p *staticPod) loggedUID(ctx context.Context) (string, error) {
	names, err := p.exec(ctx, "sh", "-c", "ls -dt "+p.logs("*"))
	if err != nil {
		return "", fmt.Errorf("the kubelet has not run %s, see journalctl --unit=kubelet on the node: %w", p.name, err)
	}
	name, _, _ := strings.Cut(names, "\n")
	return name[strings.LastIndexByte(name, '_')+1:], nil
}

// logs is the folder of the logs of the pod with the UID.
func (p *staticPod) logs(uid string) string {
	return fmt.Sprintf("/var/log/pods/%s_%s-%s_%s", metav1.NamespaceSystem, p.name, p.node, uid)
}

// apply writes the manifest. It restores the original as the same file, without the UID that operations add:
// under an explicit UID, a kubelet would not notice when somebody edits the command.
func (p *staticPod) apply(ctx context.Context) error {
	p.before = p.process(ctx)
	if !p.original {
		return p.writeManifest(ctx, p.newManifest)
	}
	if err := p.tagOriginal(ctx); err != nil {
		return err
	}
	if err := p.replace(ctx, newSuffix, p.manifest()); err != nil {
		return err
	}
	// The kubelet delays a container that it has run before by a back-off, but forgets the
	// back-off when it restarts.
	_, err := p.exec(ctx, "systemctl", "restart", "kubelet")
	return err
}

func (p *staticPod) revert(ctx context.Context) error {
	p.before = p.process(ctx)
	return p.writeManifest(ctx, p.oldManifest)
}

func (p *staticPod) process(ctx context.Context) process {
	pid, _ := p.pid(ctx) // if none runs, any process is new
	return process{seen: time.Now(), pid: pid, starts: p.startCount(ctx)}
}

// writeManifest replaces the manifest atomically.
func (p *staticPod) writeManifest(ctx context.Context, text string) error {
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
	if err := p.await(ctx, want, p.checkRunning, p.checkHealthy); err != nil {
		return err
	}
	// The kubelet recreates the mirror pod if its UID differs, but not if its image does.
	err := p.client.CoreV1().Pods(metav1.NamespaceSystem).Delete(ctx, p.name+"-"+p.node,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})
	if apierrors.IsNotFound(err) {
		return nil // the kubelet is about to create it
	}
	return err
}

// checkRunning checks that the component is a new process of the build with the SHA-256 sum. It
// kills an old one that does not terminate in time, and fails if the component crashes.
func (p *staticPod) checkRunning(ctx context.Context, sum string) error {
	pid, err := p.pid(ctx)
	if err != nil {
		if n := p.startCount(ctx) - p.before.starts; n >= maxRestarts {
			return poll.Stop(fmt.Errorf("%s crashes: the kubelet has started it %d times", p.name, n))
		}
		return err
	}
	if pid == p.before.pid {
		if time.Since(p.before.seen) > killDelay {
			p.exec(ctx, "pkill", "-KILL", "--full", "^"+p.name+" ") //nolint:errcheck // the next check shows whether it ended
		}
		return fmt.Errorf("the old %s still runs", p.name)
	}
	return p.checkBuild(ctx, pid, sum)
}

// startCount returns how often the kubelet has started the component's container. Each start
// has a log of its own, named by its number.
func (p *staticPod) startCount(ctx context.Context) int {
	names, err := p.exec(ctx, "ls", p.logs(p.uid)+"/"+p.name)
	if err != nil {
		return 0
	}
	return newestLog(names)
}

// newestLog returns the highest number of a log in names, plus one.
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

// checkHealthy checks /readyz of the node's API server, which covers its etcd, or the component's own
// /healthz. A component that is not the leader is healthy, too.
func (p *staticPod) checkHealthy(ctx context.Context) (err error) {
	if p.name == "kube-apiserver" || p.name == "etcd" {
		server := *p.target
		server.name = "kube-apiserver"
		_, err = server.get(ctx, "/readyz")
	} else {
		_, err = p.get(ctx, "/healthz")
	}
	if err != nil {
		return fmt.Errorf("%s is not healthy: %w", p.name, err)
	}
	return nil
}

// tagTime matches the time at the end of a tag that renewImage has made.
var tagTime = regexp.MustCompile(`-at[0-9]+$`)

// renewImage gives the image in the manifest a new tag. The kubelet takes a container for a new one only if its
// name or its image's changes: it would not notice another command, and it would delay a container that it has
// run before, or that somebody else has killed, by a back-off of up to five minutes.
func (p *staticPod) renewImage(ctx context.Context, manifest string) (string, error) {
	if p.uid == "" {
		return manifest, nil
	}
	image, err := podImage(manifest, p.name)
	if err != nil {
		return "", err
	}
	// The tag without a time stays on the node. An original's tag with a time may be gone,
	// because a later operation has replaced it.
	lasting := tagTime.ReplaceAllString(image, "")
	name := fmt.Sprintf("%s-at%d", lasting, time.Now().UnixMilli())
	if err := p.tag(ctx, lasting, name); err != nil {
		return "", err
	}
	if lasting != image {
		p.tags = append(p.tags, image)
	}
	p.tags = append(p.tags, name)
	return editPod(manifest, p.name, podEdit{uid: p.uid, image: name})
}

// tagOriginal makes sure that the image in the original manifest is on the node. After a
// reverted change, its tag has a time, and a later operation has removed that tag.
func (p *staticPod) tagOriginal(ctx context.Context) error {
	image, err := podImage(p.newManifest, p.name)
	if err != nil {
		return fmt.Errorf("%s: %w", copyPath(p.manifest(), originalSuffix), err)
	}
	if lasting := tagTime.ReplaceAllString(image, ""); lasting != image {
		return p.tag(ctx, lasting, image)
	}
	return nil
}

func (p *staticPod) tag(ctx context.Context, image, name string) error {
	_, err := p.exec(ctx, "ctr", "--namespace=k8s.io", "images", "tag", "--force", image, name)
	return err
}

// cleanUp removes the image tags that the manifest no longer uses.
func (p *staticPod) cleanUp(ctx context.Context) error {
	current, err := p.exec(ctx, "cat", p.manifest())
	if err != nil {
		return err
	}
	image, err := podImage(current, p.name)
	if err != nil {
		return err
	}
	tags := slices.DeleteFunc(p.tags, func(tag string) bool { return tag == image })
	if len(tags) == 0 {
		return nil
	}
	_, err = p.exec(ctx, append([]string{"ctr", "--namespace=k8s.io", "images", "rm"}, tags...)...)
	return err
}
