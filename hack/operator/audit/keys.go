package audit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// keyReader reads the keys of the ConfigMaps and Secrets that envFrom names, each once.
type keyReader struct {
	client kubernetes.Interface
	keys   map[keySource][]string
	// unread has the first error of each resource, "configmaps" and "secrets".
	unread map[string]error
}

type keySource struct{ resource, namespace, name string }

func newKeyReader(client kubernetes.Interface) *keyReader {
	return &keyReader{client: client, keys: map[keySource][]string{}, unread: map[string]error{}}
}

// uses lists the variables that the containers of spec get through envFrom only with
// relaxed names. It returns an error only if no further request makes sense.
func (r *keyReader) uses(ctx context.Context, namespace string, spec *v1.PodSpec) ([]use, error) {
	var found []use
	for c := range podutil.ContainerIter(spec, podutil.AllContainers) {
		for i := range c.EnvFrom {
			from := &c.EnvFrom[i]
			if from.Prefix != "" && !strict(from.Prefix) {
				continue // reported as RelaxedPrefix
			}
			keys, err := r.read(ctx, namespace, from)
			if err != nil {
				return found, err
			}
			for _, key := range keys {
				if name := from.Prefix + key; !strict(name) {
					found = append(found, use{c.Name, name, RelaxedKey})
				}
			}
		}
	}
	return found, nil
}

// read returns the sorted keys of what from names. An object that does not exist has
// none. After a resource could not be read in a namespace, it has none there either.
func (r *keyReader) read(ctx context.Context, namespace string, from *v1.EnvFromSource) ([]string, error) {
	var source keySource
	switch {
	case from.ConfigMapRef != nil:
		source = keySource{"configmaps", namespace, from.ConfigMapRef.Name}
	case from.SecretRef != nil:
		source = keySource{"secrets", namespace, from.SecretRef.Name}
	default:
		return nil, nil
	}
	refused := keySource{source.resource, source.namespace, ""}
	if _, ok := r.keys[refused]; ok {
		return nil, nil
	}
	if keys, ok := r.keys[source]; ok {
		return keys, nil
	}
	keys, err := r.get(ctx, source)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		r.keys[source] = keys
	case fatal(ctx, err):
		return nil, fmt.Errorf("get %s %s/%s: %w", source.resource, source.namespace, source.name, err)
	default:
		r.keys[refused] = nil
		if r.unread[source.resource] == nil {
			r.unread[source.resource] = fmt.Errorf("get %s: %w", source.resource, err)
		}
	}
	return keys, nil
}

func (r *keyReader) get(ctx context.Context, source keySource) ([]string, error) {
	if source.resource == "secrets" {
		secret, err := r.client.CoreV1().Secrets(source.namespace).Get(ctx, source.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return slices.Sorted(maps.Keys(secret.Data)), nil
	}
	configMap, err := r.client.CoreV1().ConfigMaps(source.namespace).Get(ctx, source.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(configMap.Data)), nil
}
