package proof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/layout"
	"podenv.dev/hack/internal/node"
	"podenv.dev/hack/internal/poll"
)

// severalCluster has three control planes.
var severalCluster = layout.MustFind().UniqueName("podenv-several")

// longestOutage is how long the API may be away for a client that tries again.
const longestOutage = 5 * time.Second

// severalControlPlanes creates a cluster of three control planes, and measures how long its API is away when
// one of them fails, and while their API servers are swapped. Then it deletes the cluster.
func severalControlPlanes(c *check) (err error) {
	gates, err := steps.Gates()
	if err != nil {
		return err
	}
	several, err := quiet().Cluster(c.ctx, built.value, cluster.Config{Name: severalCluster, ControlPlanes: 3, Workers: 0, Gates: gates, Recreate: true})
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := c.whatever()
		defer cancel()
		err = errors.Join(err, several.Delete(clean, c.step))
	}()
	nodes, err := several.Nodes(c.ctx)
	if err != nil {
		return err
	}
	stock, err := quiet().Component(c.ctx, "stock:"+steps.Series.Name, "kube-apiserver")
	if err != nil {
		return err
	}
	second := nodes[1].Name
	exec := func(args ...string) error {
		_, err := several.Exec(c.ctx, second, args...)
		return err
	}
	// Others serve without it.
	back := func() error {
		return poll.Until(c.ctx, 2*time.Minute, func(ctx context.Context) error {
			_, err := several.Exec(ctx, second, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "--server=https://127.0.0.1:6443",
				"--insecure-skip-tls-verify", "get", "--raw=/readyz")
			return err
		})
	}
	for _, p := range []struct {
		name string
		do   func() error
	}{
		{"an API server is killed", func() error {
			return errors.Join(exec("pkill", "-KILL", "kube-apiserver"), back())
		}},
		{"an API server is removed", func() error {
			const manifest = "/etc/kubernetes/manifests/kube-apiserver.yaml"
			if err := exec("mv", manifest, "/etc/kubernetes/"); err != nil {
				return err
			}
			err := poll.Until(c.ctx, time.Minute, func(context.Context) error {
				if exec("pidof", "kube-apiserver") == nil {
					return errors.New("the API server still runs")
				}
				return nil
			})
			return errors.Join(err, exec("mv", "/etc/kubernetes/kube-apiserver.yaml", manifest), back())
		}},
		{"a control plane does not answer", func() error {
			if err := several.Docker(c.ctx, "pause", second).Run(); err != nil {
				return err
			}
			time.Sleep(10 * time.Second) // twice what is allowed
			return errors.Join(several.Docker(c.ctx, "unpause", second).Run(), back())
		}},
		{"the API servers are swapped one after another", func() error { return node.Push(c.ctx, several, stock, nil) }},
	} {
		c.step.Now("%s", p.name)
		c.part(p.name, func() error {
			away, failed, err := outage(c.ctx, several, p.do)
			fmt.Fprintf(c.step.Log(), "%s: %d requests failed, the API was away for %s\n", p.name, failed, away.Round(time.Millisecond))
			if err == nil && away > longestOutage {
				err = fmt.Errorf("the API was away for %s, want at most %s", away, longestOutage)
			}
			return err
		})
	}
	return nil
}

// outage requests an object every 100 ms while do runs, over a connection to each API server, and returns the
// longest time between two answers of one of these clients, without that interval, and how many requests failed.
func outage(ctx context.Context, c *cluster.Cluster, do func() error) (longest time.Duration, failed int, err error) {
	const interval = 100 * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range 6 {
		config, err := c.RESTConfig()
		if err != nil {
			return 0, 0, err
		}
		config.QPS, config.Timeout = -1, time.Second // a client that tries again
		config.Dial = new(net.Dialer).DialContext    // no client shares the connection of another
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return 0, 0, err
		}
		clients.Go(func() {
			for answered := time.Now(); ctx.Err() == nil; time.Sleep(interval) {
				_, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
				mu.Lock()
				if now := time.Now(); err == nil || ctx.Err() != nil {
					longest, answered = max(longest, now.Sub(answered)-interval), now
				} else {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	time.Sleep(10 * interval) // all are connected
	err = do()
	time.Sleep(10 * interval)
	cancel()
	clients.Wait()
	return longest, failed, err
}
