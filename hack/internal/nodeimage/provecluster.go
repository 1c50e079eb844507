package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podenv.dev/hack/internal/cluster"
)

func (p *proof) size(ctx context.Context) (string, error) {
	img, err := inspect(ctx, p.engine, p.ref)
	if err != nil {
		return "", err
	}
	if img.Size > MaxSize {
		return "", fmt.Errorf("%s takes %d bytes, more than %d", p.ref, img.Size, MaxSize)
	}
	return fmt.Sprintf("%d bytes", img.Size), nil
}

// create leaves to kind all but the network, which clusters of podenv's may be in or
// about to be: kind would make it without a label, so that nobody deletes it.
func (p *proof) create(ctx context.Context) (string, error) {
	unlock, err := cluster.HoldNetwork(ctx, p.engine)
	if err != nil {
		return "", err
	}
	defer unlock()
	p.started = time.Now()
	if err := p.kind(ctx, "create", "cluster", "--image", p.ref, "--config", p.configFile()).Run(); err != nil {
		return "", err
	}
	// The node's kubectl is the release's own, whatever this machine has.
	if err := p.engine.Docker(ctx, "cp", p.node("control-plane")+":/usr/bin/kubectl", p.dir).Run(); err != nil {
		return "", err
	}
	return "in " + time.Since(p.started).Round(time.Second/10).String(), nil
}

func (p *proof) ready(ctx context.Context) (string, error) {
	if err := p.allReady(ctx, readyTime-time.Since(p.started)); err != nil {
		return "", err
	}
	took := time.Since(p.started)
	out, err := p.kubectl(ctx, "get", "nodes,pods", "--all-namespaces", "--output=wide").Output()
	return fmt.Sprintf("in %v\n%s", took.Round(time.Second/10), out), err
}

// allReady waits until the nodes, and every pod that there is, are Ready. The
// deployment of CoreDNS comes with its pods in tow, so it is waited for by name.
func (p *proof) allReady(ctx context.Context, timeout time.Duration) error {
	if timeout <= 0 {
		timeout = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, args := range [][]string{
		{"wait", "--for=condition=Ready", "nodes", "--all"},
		{"--namespace=kube-system", "rollout", "status", "deployment/coredns"},
		{"--namespace=kube-system", "rollout", "status", "daemonset/podnet"},
		{"--namespace=kube-system", "rollout", "status", "daemonset/kube-proxy"},
		{"--namespace=kube-system", "wait", "--for=condition=Ready", "pods", "--all"},
	} {
		if err := p.kubectl(ctx, append(args, "--timeout="+timeout.String())...).Run(); err != nil {
			state, _ := p.kubectl(context.WithoutCancel(ctx), "get", "nodes,pods", "--all-namespaces").Output()
			return fmt.Errorf("%w\n%s", err, state)
		}
	}
	return nil
}

func (p *proof) load(ctx context.Context) (string, error) {
	for _, archive := range p.testImages {
		if err := p.kind(ctx, "load", "image-archive", archive).Run(); err != nil {
			return "", err
		}
	}
	return p.engine.Docker(ctx, "exec", p.node("worker"), "ctr", "--namespace=k8s.io", "images", "ls", "--quiet").Output()
}

// exportLogs also shows that kind finds in a node every command that it looks for.
func (p *proof) exportLogs(ctx context.Context) (string, error) {
	dir := filepath.Join(p.dir, "logs")
	if err := p.kind(ctx, "export", "logs", dir).Run(); err != nil {
		return "", err
	}
	images, err := os.ReadFile(filepath.Join(dir, p.node("worker"), "images.log"))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(images), podnetImage) {
		return "", fmt.Errorf("images.log of the worker has no %s:\n%s", podnetImage, images)
	}
	return fmt.Sprintf("the worker has %d lines of images", strings.Count(string(images), "\n")), nil
}

// restart restarts all nodes, as a reboot of the machine would: they may come back with
// each other's addresses. It looks for a pod's answer, because nodes and pods are
// Ready in the API server's eyes until their kubelet speaks again.
func (p *proof) restart(ctx context.Context) (string, error) {
	start := time.Now()
	if err := p.engine.Docker(ctx, "restart", p.node("worker"), p.node("control-plane")).Log(p.step.Log()).Run(); err != nil {
		return "", err
	}
	var saw string
	err := eventually(ctx, answerTime, func() (err error) {
		saw, err = p.podToPod(ctx)
		return err
	})
	if err != nil {
		return "", err
	}
	if err := p.allReady(ctx, answerTime); err != nil {
		return "", err
	}
	return fmt.Sprintf("after %v: %s", time.Since(start).Round(time.Second/10), saw), nil
}

// deleteAll deletes the cluster and looks for what is left of it.
func (p *proof) deleteAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	if err := p.delete(ctx); err != nil {
		return err
	}
	left, err := p.engine.Docker(ctx, "ps", "--all", "--quiet", "--filter", "label=io.x-k8s.kind.cluster="+proofCluster).Output()
	if err == nil && left != "" {
		err = fmt.Errorf("broken promise: kind delete cluster leaves nothing: containers %s are left", strings.Fields(left))
	}
	return errors.Join(err, cluster.RemoveNetwork(ctx, p.engine))
}

func (p *proof) delete(ctx context.Context) error {
	return p.kind(ctx, "delete", "cluster").Run()
}
