package expand

import (
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"podenv.dev/hack/operator/manifest"
)

// Manifest is what was found in files.
type Manifest struct {
	workloads  []workload
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
	files      []string // as they were named to Read
	other      []string // the kinds without pods
}

// Read adds the objects of a file: YAML of any number of documents, or JSON; lists
// too. Kinds without pods are passed over, but ConfigMaps and Secrets are kept:
// what comes in the same manifest is what its pods will find. The error names the
// file and the document, counted from 1.
func (m *Manifest) Read(name string, file io.Reader) error {
	m.files = append(m.files, name)
	return manifest.NewReader(scheme.Scheme, m.add).Read(name, file)
}

func (m *Manifest) add(object runtime.Object, kind string) error {
	switch object := object.(type) {
	case *corev1.ConfigMap:
		m.configMaps = append(m.configMaps, object)
	case *corev1.Secret:
		m.secrets = append(m.secrets, object)
	default:
		w, ok := workloadOf(object, kind)
		if !ok {
			m.other = append(m.other, kind)
			return nil
		}
		m.workloads = append(m.workloads, w)
	}
	return nil
}
