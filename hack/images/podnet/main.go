// Command podnet connects the pods of a kind cluster across its nodes. It runs on every node, in
// the node's network namespace. It configures CNI to give pods addresses of the node's pod CIDR,
// adds routes to the pod CIDRs of the other nodes, and masquerades what pods send out of the pod
// network with the node's address.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	resync = time.Minute     // how often podnet restores what something else on the node removed
	retry  = 2 * time.Second // how soon podnet tries again after a failure

	hostRoot = "/host" // where the node's root file system is mounted
)

func main() {
	log.SetFlags(log.LstdFlags | log.LUTC)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatalf("podnet: %v", err)
	}
}

func run(ctx context.Context) error {
	node := os.Getenv("NODE_NAME")
	if node == "" {
		return fmt.Errorf("no node name: set NODE_NAME")
	}
	podSubnets, err := parseSubnets(os.Getenv("POD_SUBNET"))
	if err != nil {
		return err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("reading the service account: %w", err)
	}
	// With the address from kind, podnet need not wait until kube-proxy serves the API's service.
	if server := os.Getenv("CONTROL_PLANE_ENDPOINT"); server != "" {
		config.Host = "https://" + strings.TrimPrefix(server, "https://")
	}
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return err
	}
	changed := make(chan struct{}, 1)
	store, informer := watchNodes(client.RESTClient(), changed)
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	host := &host{root: hostRoot, run: chroot(hostRoot)}
	loop(ctx, changed, func() error { return sync(ctx, host, node, podSubnets, store) })
	return nil
}

// watchNodes watches the nodes, and sends to changed when one changes.
func watchNodes(client cache.Getter, changed chan struct{}) (cache.Store, cache.Controller) {
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	return cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client, "nodes", v1.NamespaceAll, fields.Everything()),
		ObjectType:    &v1.Node{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
}

// loop calls work now, on every change and every minute, and soon after an error, until ctx ends.
func loop(ctx context.Context, changed <-chan struct{}, work func() error) {
	for {
		wait := resync
		if err := work(); err != nil {
			log.Printf("will try again in %v: %v", retry, err)
			wait = retry
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(wait):
		}
	}
}
