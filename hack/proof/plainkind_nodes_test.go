package proof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"podenv.dev/hack/internal/nodeimage"
	"podenv.dev/hack/internal/poll"
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
	if err := k.kind(k.ctx, "create", "cluster", "--image", k.image, "--config", filepath.Join(repo.Root, "docs", "kind.yaml")).Run(); err != nil {
		return "", err
	}
	// The node's kubectl is the release's own, whatever this machine has.
	if err := k.docker("cp", k.node("control-plane")+":/usr/bin/kubectl", k.dir).Run(); err != nil {
		return "", err
	}
	return "in " + time.Since(k.started).Round(time.Second/10).String(), nil
}

func (k *kindProof) ready() (string, error) {
	if err := k.allReady(readyTimeout - time.Since(k.started)); err != nil {
		return "", err
	}
	took := time.Since(k.started)
	out, err := k.kubectl("get", "nodes,pods", "--all-namespaces", "--output=wide").Output()
	return fmt.Sprintf("in %v\n%s", took.Round(time.Second/10), out), err
}

// allReady waits until the nodes and all pods are Ready. The pods of a Deployment or DaemonSet may
// not exist yet, so it waits for these by name.
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

// cgroups checks that the kubelet and containerd use the same cgroup driver. Otherwise runc uses
// the name of a systemd slice as a path.
func (k *kindProof) cgroups() (string, error) {
	out, err := k.docker("exec", k.node("control-plane"), "sh", "-c", `cat "/proc/$(pidof etcd)/cgroup"`).Output()
	if err == nil && (!strings.Contains(out, "kubepods") || strings.Contains(out, ".slice:")) {
		err = fmt.Errorf("the container of etcd is in another cgroup:\n%s", out)
	}
	return out, err
}

// proxyTools checks that the image of kube-proxy has the libraries of its tools.
func (k *kindProof) proxyTools() (string, error) {
	// The container has no shell, so the node's runs the loop.
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

// exportLogs also checks that a node has every command that kind calls there.
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

// restart restarts all nodes, as a reboot of the machine does: they may swap their IP addresses. It
// waits for a pod's response, because the API server has nodes and pods as Ready until their
// kubelet updates them.
func (k *kindProof) restart() (saw string, err error) {
	start := time.Now()
	if err := k.docker("restart", k.node("worker"), k.node("control-plane")).Run(); err != nil {
		return "", err
	}
	err = poll.Until(k.ctx, requestTimeout, func(context.Context) error {
		saw, err = k.podToPod()
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("after %v: %s", time.Since(start).Round(time.Second/10), saw), k.allReady(requestTimeout)
}
