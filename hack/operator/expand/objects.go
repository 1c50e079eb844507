package expand

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// presence is what came of looking for an object.
type presence int

const (
	isThere presence = iota
	isMissing
	isUnknown
)

type objectID struct{ namespace, name string }

// objects are the ConfigMaps and Secrets that pods take variables from: those of
// the manifest before those of the cluster. Each is asked for once.
type objects struct {
	client     kubernetes.Interface // nil without a cluster
	configMaps map[objectID]map[string]string
	secrets    map[objectID]map[string]string
	// unreadable says why an object of the cluster could not be read.
	unreadable map[string]string
}

// noCluster is why an object is unknown without a cluster.
const noCluster = "give a cluster with --kubeconfig to read it"

func newObjects(m *Manifest, namespace string, client kubernetes.Interface) *objects {
	o := &objects{
		client:     client,
		configMaps: map[objectID]map[string]string{},
		secrets:    map[objectID]map[string]string{},
		unreadable: map[string]string{},
	}
	for _, c := range m.configMaps {
		data := c.Data
		if data == nil {
			data = map[string]string{}
		}
		o.configMaps[objectID{orDefault(c.Namespace, namespace), c.Name}] = data
	}
	for _, s := range m.secrets {
		o.secrets[objectID{orDefault(s.Namespace, namespace), s.Name}] = secretData(s)
	}
	return o
}

func orDefault(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// secretData is data with stringData over it, as the API server merges them.
func secretData(s *corev1.Secret) map[string]string {
	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	for key, value := range s.StringData {
		data[key] = value
	}
	return data
}

// configMap returns the data of a ConfigMap; where that is unknown, why.
func (o *objects) configMap(ctx context.Context, id objectID) (map[string]string, presence, string, error) {
	return o.read(o.configMaps, "ConfigMap", id, func() (map[string]string, error) {
		c, err := o.client.CoreV1().ConfigMaps(id.namespace).Get(ctx, id.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return c.Data, nil
	})
}

// secret is configMap for a Secret.
func (o *objects) secret(ctx context.Context, id objectID) (map[string]string, presence, string, error) {
	return o.read(o.secrets, "Secret", id, func() (map[string]string, error) {
		s, err := o.client.CoreV1().Secrets(id.namespace).Get(ctx, id.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secretData(s), nil
	})
}

// read returns an error only where going on makes no sense: a user who may not
// read Secrets still wants to know about the rest.
func (o *objects) read(cache map[objectID]map[string]string, kind string, id objectID, get func() (map[string]string, error)) (map[string]string, presence, string, error) {
	title := fmt.Sprintf("%s %s/%s", kind, id.namespace, id.name)
	if data, ok := cache[id]; ok {
		if data == nil {
			return nil, isMissing, "", nil
		}
		return data, isThere, "", nil
	}
	if why, ok := o.unreadable[title]; ok {
		return nil, isUnknown, why, nil
	}
	if o.client == nil {
		return nil, isUnknown, noCluster, nil
	}
	data, err := get()
	switch {
	case apierrors.IsNotFound(err):
		cache[id] = nil
		return nil, isMissing, "", nil
	case apierrors.IsForbidden(err):
		o.unreadable[title] = "you may not read it in the cluster"
		return nil, isUnknown, o.unreadable[title], nil
	case err != nil:
		return nil, isUnknown, "", fmt.Errorf("reading %s: %w", title, err)
	}
	if data == nil {
		data = map[string]string{}
	}
	cache[id] = data
	return data, isThere, "", nil
}
