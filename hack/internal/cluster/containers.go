package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"podenv.dev/hack/internal/run"
)

// kind's labels of node containers.
const (
	labelCluster = "io.x-k8s.kind.cluster"
	labelRole    = "io.x-k8s.kind.role"
)

// loadBalancer is the role of the container before several API servers, which is no node.
const loadBalancer = "external-load-balancer"

type docker func(ctx context.Context, args ...string) *run.Cmd

// container is a container that is a node of a cluster, or has the name of one.
type container struct {
	Name    string
	Cluster string // kind's name of its cluster; empty if kind did not create it
	Role    string
	Image   string // ID of its image
	Running bool
	Marked  bool // created by this package
}

func controlPlane(cluster string) string { return cluster + "-control-plane" }

// containers lists the containers that have the name of a node of the cluster, whoever made them.
func (d docker) containers(ctx context.Context, name string) ([]container, error) {
	names := "^" + regexp.QuoteMeta(name) + "-(control-plane[0-9]*|worker[0-9]*|" + loadBalancer + ")$"
	ids, err := d(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter=name="+names).Output()
	if err != nil || ids == "" {
		return nil, err
	}
	out, err := d(ctx, append([]string{"inspect", "--type=container"}, strings.Fields(ids)...)...).Output()
	if err != nil {
		return nil, err
	}
	return parseContainers([]byte(out))
}

// parseContainers parses the output of docker inspect. Control planes come first.
func parseContainers(data []byte) ([]container, error) {
	var all []struct {
		Name  string
		Image string
		State struct{ Running bool }
		// Config and Mounts are null for a container that is being removed.
		Config *struct{ Labels map[string]string }
		Mounts []struct{ Destination string }

		NetworkSettings struct{ Networks map[string]any }
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading docker inspect: %w", err)
	}
	out := make([]container, len(all))
	for i, c := range all {
		out[i] = container{Name: strings.TrimPrefix(c.Name, "/"), Image: c.Image, Running: c.State.Running}
		if c.Config != nil {
			out[i].Cluster = c.Config.Labels[labelCluster]
			out[i].Role = c.Config.Labels[labelRole]
			// kind mounts nothing there. Clusters of plain kind are on other networks.
			_, ours := c.NetworkSettings.Networks["kind-"+out[i].Cluster]
			out[i].Marked = out[i].Role == loadBalancer && ours
		}
		for _, m := range c.Mounts {
			out[i].Marked = out[i].Marked || m.Destination == marker
		}
	}
	slices.SortFunc(out, func(a, b container) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

func (d docker) imageID(ctx context.Context, ref string) (string, error) {
	id, err := d(ctx, "image", "inspect", "--format", "{{.Id}}", ref).Output()
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such image") {
		return "", fmt.Errorf("the container engine does not have node image %s: build it with `podenv image`", ref)
	}
	return id, err
}

// removeContainers deletes the marked containers of a cluster, with their volumes, and counts them.
func (d docker) removeContainers(ctx context.Context, name string) (int, error) {
	return d.onMarked(ctx, name, "rm", "--force", "--volumes")
}

// onMarked runs a docker command on the marked containers of a cluster, and counts them.
func (d docker) onMarked(ctx context.Context, name string, command ...string) (int, error) {
	all, err := d.containers(ctx, name)
	if err != nil {
		return 0, err
	}
	var names []string
	for _, c := range all {
		if c.Marked {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return 0, nil
	}
	return len(names), d(ctx, append(command, names...)...).Run()
}

// foreign describes a container that podenv did not create; "" if it created all.
func foreign(found []container) string {
	for _, c := range found {
		switch {
		case c.Cluster == "":
			return fmt.Sprintf("container %s, which kind did not make, has the name of a node", c.Name)
		case !c.Marked:
			return fmt.Sprintf("kind cluster %s exists and was not made by podenv", c.Cluster)
		}
	}
	return ""
}

func (d docker) removeNetwork(ctx context.Context, name string) error {
	ids, err := d(ctx, "network", "ls", "--quiet", "--filter=name=^"+regexp.QuoteMeta(name)+"$").Output()
	if err != nil || ids == "" {
		return err
	}
	return d(ctx, append([]string{"network", "rm"}, strings.Fields(ids)...)...).Run()
}

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
