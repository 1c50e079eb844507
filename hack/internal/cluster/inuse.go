package cluster

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// checkNotInUse returns ErrInUse if somebody runs something on the cluster that a recreation, for
// the reason mismatch, would lose. Nobody uses a half-made cluster.
func (c *Cluster) checkNotInUse(ctx context.Context, mismatch error, recreate bool) error {
	if recreate || c.record == nil {
		return nil
	}
	used, err := c.inUse(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && used == "" {
		return nil
	}
	if err != nil {
		used = "what the API server does not list: " + err.Error()
	}
	return fmt.Errorf("cluster %s: %w: %w\n  it would lose %s\n  to lose it: `%s --recreate`; to keep it: choose another name with --name",
		c.name, ErrInUse, mismatch, used, c.command("up"))
}

// Objects that every new cluster has.
var (
	builtInNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system", "local-path-storage"}
	builtInObjects    = []string{"configmaps kube-root-ca.crt", "endpoints kubernetes", "endpointslices kubernetes", "serviceaccounts default", "services kubernetes"}
	// transientResources have objects that components create.
	transientResources = []string{"events", "leases"}
)

// inUse names a namespace, or an object in the namespace default, that a user has made; "" if none.
func (c *Cluster) inUse(ctx context.Context) (string, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return "", err
	}
	config.Timeout = requestTimeout
	config.WarningHandler = rest.NoWarnings{} // about deprecated resources
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return "", err
	}
	found, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	for _, namespace := range found.Items {
		if namespace.DeletionTimestamp == nil && !slices.Contains(builtInNamespaces, namespace.Name) {
			return "namespace " + namespace.Name, nil
		}
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	resources, err := finder.ServerPreferredNamespacedResources()
	if err != nil {
		return "", err
	}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, resources) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return "", err
		}
		for _, resource := range list.APIResources {
			if slices.Contains(transientResources, resource.Name) {
				continue
			}
			objects, err := client.Resource(version.WithResource(resource.Name)).Namespace(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
			if err != nil {
				return "", fmt.Errorf("listing %s: %w", resource.Name, err)
			}
			for _, object := range objects.Items {
				if object.DeletionTimestamp == nil && !slices.Contains(builtInObjects, resource.Name+" "+object.Name) {
					return resource.SingularName + " " + object.Name + " in namespace default", nil
				}
			}
		}
	}
	return "", nil
}
