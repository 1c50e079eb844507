package node

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/poll"
)

const (
	// maxRestarts is how often a new component may restart until it counts as crashing.
	maxRestarts = 3
	// kubeletConfig is the kubelet's configuration file on kind's nodes.
	kubeletConfig = "/var/lib/kubelet/config.yaml"
	// kubeletFlags has the flags that kubeadm gives the kubelet.
	kubeletFlags = "/var/lib/kubelet/kubeadm-flags.env"
	// noPauseImage is the first minor whose kubelet refuses the flag that names the pause
	// image. kubeadm removes the flag when it upgrades a node to that minor.
	noPauseImage = "v1.35"
)

// kubelet changes the kubelet, a systemd service.
type kubelet struct {
	*target
	change
	restartedAt time.Time
}

func (k *kubelet) state(ctx context.Context) (s cluster.State, err error) {
	config, err := k.exec(ctx, "cat", kubeletConfig)
	if err != nil {
		return s, err
	}
	if s.Gates, err = kubeletGates(config); err != nil {
		return s, fmt.Errorf("%s: %w", kubeletConfig, err)
	}
	pid, _, err := k.unit(ctx)
	if err != nil {
		return s, err
	}
	if pid == "0" {
		// A kubelet that crashes can be changed as well.
		s.SHA256, err = k.fileSum(ctx, binDir+k.name)
		return s, err
	}
	if s.SHA256, err = k.processSum(ctx, pid); err != nil {
		return s, err
	}
	if r, err := k.runningState(ctx); err == nil {
		s.Version = r.version
	}
	return s, nil
}

func (k *kubelet) files() []string { return []string{binDir + k.name, kubeletConfig, kubeletFlags} }

// changed lists the files that the change replaces.
func (k *kubelet) changed() []string {
	changed := map[string]bool{binDir + k.name: k.binary != "", kubeletFlags: k.binary != "", kubeletConfig: k.gates != nil}
	return slices.DeleteFunc(k.files(), func(file string) bool { return !changed[file] && !k.original })
}

func (k *kubelet) stage(ctx context.Context, ch change, to cluster.State) error {
	k.change = ch
	if k.original {
		return k.stageOriginals(ctx, k.changed()...)
	}
	if k.binary != "" {
		if err := k.stageBinary(ctx, k.binary); err != nil {
			return err
		}
		flags, err := k.exec(ctx, "cat", kubeletFlags)
		if err != nil {
			return err
		}
		if err := k.stageFile(ctx, strings.NewReader(flagsFor(to.Version, flags)+"\n"), kubeletFlags, "0644"); err != nil {
			return err
		}
	}
	if k.gates == nil {
		return nil
	}
	config, err := k.exec(ctx, "cat", kubeletConfig)
	if err != nil {
		return err
	}
	if config, err = setKubeletGates(config, k.gates); err != nil {
		return fmt.Errorf("%s: %w", kubeletConfig, err)
	}
	return k.stageFile(ctx, strings.NewReader(config), kubeletConfig, "0644")
}

func (k *kubelet) apply(ctx context.Context) error  { return k.restart(ctx, newSuffix) }
func (k *kubelet) revert(ctx context.Context) error { return k.restart(ctx, oldSuffix) }

// restartScript stops the kubelet, renames files as moveScript does, and starts it, without the restarts of an earlier
// build in the count. systemd starts a kubelet that crashes again at any time: while some of the files are replaced
// and others are not, there must be none.
const restartScript = "systemctl stop kubelet; " + moveScript + "; systemctl reset-failed kubelet; systemctl start kubelet"

// restart restarts the kubelet with the copies of the changed files that have the suffix.
func (k *kubelet) restart(ctx context.Context, suffix string) error {
	args := []string{"sh", "-ec", restartScript, "sh"}
	for _, file := range k.changed() {
		args = append(args, copyPath(file, suffix), file)
	}
	k.restartedAt = time.Now().Truncate(time.Second) // as heartbeats are in the API
	// Interrupted, the script would go on beside the one that reverts the change.
	_, err := k.exec(context.WithoutCancel(ctx), args...)
	return err
}

func (k *kubelet) waitServing(ctx context.Context, want cluster.State) error {
	return k.await(ctx, want, k.checkRunning, k.checkReady)
}

// checkRunning checks that the node's kubelet is the build with the SHA-256 sum.
func (k *kubelet) checkRunning(ctx context.Context, sum string) error {
	pid, restarts, err := k.unit(ctx)
	if err != nil {
		return err
	}
	if restarts >= maxRestarts {
		return poll.Stop(fmt.Errorf("the kubelet crashes: systemd has restarted it %d times", restarts))
	}
	if pid == "0" {
		return fmt.Errorf("the kubelet does not run")
	}
	return k.checkBuild(ctx, pid, sum)
}

// checkReady checks that the kubelet answers, and that it has reported the node as ready
// since its restart: until then the API has the report of the previous kubelet.
func (k *kubelet) checkReady(ctx context.Context) error {
	if _, err := k.get(ctx, "/healthz"); err != nil {
		return fmt.Errorf("the kubelet is not healthy: %w", err)
	}
	n, err := k.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ready := cluster.NodeReady(n)
	if ready.LastHeartbeatTime.Time.Before(k.restartedAt) {
		return fmt.Errorf("the kubelet has not reported since its restart: its last heartbeat is of %s", ready.LastHeartbeatTime.Format(time.TimeOnly))
	}
	if ready.Status != corev1.ConditionTrue {
		return fmt.Errorf("the node is not ready: %s", ready.Message)
	}
	return nil
}

func (k *kubelet) log(ctx context.Context) string {
	out, err := k.exec(ctx, "journalctl", "--no-pager", "--output=cat", "--unit="+k.name, "--lines="+logLines)
	if err != nil {
		return err.Error()
	}
	return out
}

// unit returns the state of the systemd service: the process, "0" if none runs, and how often
// systemd has restarted it since the last reset.
func (k *kubelet) unit(ctx context.Context) (pid string, restarts int, err error) {
	out, err := k.exec(ctx, "systemctl", "show", "--property=MainPID,NRestarts", k.name)
	if err != nil {
		return "", 0, err
	}
	return parseUnit(out)
}

func parseUnit(out string) (pid string, restarts int, err error) {
	if _, err := fmt.Sscanf(out, "MainPID=%s\nNRestarts=%d", &pid, &restarts); err != nil {
		return "", 0, fmt.Errorf("systemctl show printed %q: want MainPID and NRestarts", out)
	}
	return pid, restarts, nil
}

var pauseImageFlag = regexp.MustCompile(` ?--pod-infra-container-image=[^ "]*`)

// flagsFor returns kubeadm's flags without the one that the kubelet of a version refuses.
func flagsFor(version, flags string) string {
	if semver.Compare(semver.MajorMinor(version), noPauseImage) < 0 {
		return flags
	}
	return pauseImageFlag.ReplaceAllString(flags, "")
}

func kubeletGates(config string) (map[string]bool, error) {
	var fields struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	err := yaml.Unmarshal([]byte(config), &fields)
	return fields.FeatureGates, err
}

// setKubeletGates returns the KubeletConfiguration with exactly these gates, and all else as it is.
func setKubeletGates(config string, set map[string]bool) (string, error) {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(config), &fields); err != nil {
		return "", err
	}
	if fields["kind"] != "KubeletConfiguration" {
		return "", fmt.Errorf("it is a %v, not a KubeletConfiguration", fields["kind"])
	}
	delete(fields, "featureGates")
	if len(set) > 0 {
		fields["featureGates"] = set
	}
	out, err := yaml.Marshal(fields)
	return string(out), err
}
