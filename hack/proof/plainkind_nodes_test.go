package proof

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podenv.dev/hack/internal/nodeimage"
)

func (k *kindProof) size() (string, error) {
	out, err := k.docker("image", "inspect", "--format", "{{.Size}}", k.image).Output()
	if err != nil {
		return "", err
	}
	if size, err := strconv.ParseInt(out, 10, 64); err != nil || size > nodeimage.MaxSize {
		return "", fmt.Errorf("%s takes %s bytes, more than %d", k.image, out, nodeimage.MaxSize)
	}
	return out + " bytes", nil
}

func (k *kindProof) create() (string, error) {
	k.started = time.Now()
	if err := k.kind(k.ctx, "create", "cluster", "--image", k.image, "--config", k.configFile()).Run(); err != nil {
		return "", err
	}
	// The node's kubectl is the release's own, whatever this machine has.
	if err := k.docker("cp", k.node("control-plane")+":/usr/bin/kubectl", k.dir).Run(); err != nil {
		return "", err
	}
	return "in " + time.Since(k.started).Round(time.Second/10).String(), nil
}

func (k *kindProof) ready() (string, error) {
	if err := k.allReady(readyTime - time.Since(k.started)); err != nil {
		return "", err
	}
	took := time.Since(k.started)
	out, err := k.kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide").Output()
	return fmt.Sprintf("in %v\n%s", took.Round(time.Second/10), out), err
}

// allReady waits until the nodes and all pods are Ready. The deployment of CoreDNS comes with
// its pods in tow, so it is waited for by name.
func (k *kindProof) allReady(timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for _, args := range [][]string{
		{"wait", "--for=condition=Ready", "nodes", "--all"},
		{"--namespace=kube-system", "rollout", "status", "deployment/coredns"},
		{"--namespace=kube-system", "rollout", "status", "daemonset/podnet"},
		{"--namespace=kube-system", "rollout", "status", "daemonset/kube-proxy"},
		{"--namespace=kube-system", "wait", "--for=condition=Ready", "pods", "--all"},
	} {
		left := max(time.Until(deadline), time.Second)
		if err := k.kubectl(append(args, "--timeout="+left.String())...).Run(); err != nil {
			state, _ := k.kubectl("get", "nodes,pods", "--all-namespaces").Output()
			return fmt.Errorf("%w\n%s", err, state)
		}
	}
	return nil
}

// cgroups shows that the kubelet and containerd agree on who manages cgroups, systemd or they
// themselves. Otherwise runc takes systemd's way to name a cgroup for a path.
func (k *kindProof) cgroups() (string, error) {
	out, err := k.docker("exec", k.node("control-plane"), "sh", "-c", `cat "/proc/$(pidof etcd)/cgroup"`).Output()
	if err == nil && (!strings.Contains(out, "kubepods") || strings.Contains(out, ".slice:")) {
		err = fmt.Errorf("the container of etcd is in another cgroup:\n%s", out)
	}
	return out, err
}

// proxyTools shows that the image of kube-proxy has what its tools load.
func (k *kindProof) proxyTools() (string, error) {
	// The container has no shell for the loop.
	return k.docker("exec", k.node("control-plane"), "sh", "-ec", `
		for tool in iptables ip6tables 'xtables-legacy-multi iptables' ipset nft conntrack kmod; do
			chroot "/proc/$(pidof -s kube-proxy)/root" $tool --version
		done`).Output()
}

func (k *kindProof) load() (string, error) {
	for _, archive := range built.value.TestImages {
		if err := k.kind(k.ctx, "load", "image-archive", archive).Run(); err != nil {
			return "", err
		}
	}
	return k.docker("exec", k.node("worker"), "ctr", "--namespace=k8s.io", "images", "ls", "--quiet").Output()
}

// exportLogs also shows that kind finds in a node every command that it looks for.
func (k *kindProof) exportLogs() (string, error) {
	dir := filepath.Join(k.dir, "logs")
	if err := k.kind(k.ctx, "export", "logs", dir).Run(); err != nil {
		return "", err
	}
	images, err := os.ReadFile(filepath.Join(dir, k.node("worker"), "images.log"))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(images), "podnet") {
		return "", fmt.Errorf("images.log of the worker has no podnet:\n%s", images)
	}
	return fmt.Sprintf("the worker has %d lines of images", strings.Count(string(images), "\n")), nil
}

// restart restarts all nodes, as a reboot of the machine would: they may come back with
// each other's addresses. It looks for a pod's answer, because nodes and pods are
// Ready in the API server's eyes until their kubelet speaks again.
func (k *kindProof) restart() (saw string, err error) {
	start := time.Now()
	if err := k.docker("restart", k.node("worker"), k.node("control-plane")).Run(); err != nil {
		return "", err
	}
	err = eventually(k.ctx, answerTime, func() error {
		saw, err = k.podToPod()
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("after %v: %s", time.Since(start).Round(time.Second/10), saw), k.allReady(answerTime)
}
