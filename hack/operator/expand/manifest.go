package expand

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// Manifest is what was found in files.
type Manifest struct {
	workloads  []workload
	configMaps []*corev1.ConfigMap
	secrets    []*corev1.Secret
	files      []string // as they were named to Read
	other      []string // the kinds without pods
}

// strict refuses a field that the API does not have: a misspelt one would be
// ignored here and fail where it counts.
var strict = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
	json.SerializerOptions{Yaml: true, Strict: true})

// Read adds the objects of a file: YAML of any number of documents, or JSON; lists
// too. Kinds without pods are passed over, but ConfigMaps and Secrets are kept:
// what comes in the same manifest is what its pods will find. The error names the
// file and the document, counted from 1.
func (m *Manifest) Read(name string, file io.Reader) error {
	m.files = append(m.files, name)
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.add(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, number, err)
		}
	}
}

func (m *Manifest) add(document []byte) error {
	// Comments, or the nothing before a leading "---".
	if content, err := yaml.ToJSON(document); err == nil && bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil
	}
	object, kind, err := strict.Decode(document, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		m.other = append(m.other, kind.Kind)
		return nil
	case err != nil:
		return err
	case !meta.IsListType(object):
		return m.addObject(object, kind.Kind)
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return err
	}
	for i, item := range items {
		if err := m.addItem(item); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// addItem adds an item of a list, which is decoded in a typed list only.
func (m *Manifest) addItem(item runtime.Object) error {
	if raw, ok := item.(*runtime.Unknown); ok {
		return m.add(raw.Raw)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(item)
	if err != nil {
		return err
	}
	return m.addObject(item, kinds[0].Kind)
}

func (m *Manifest) addObject(object runtime.Object, kind string) error {
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
