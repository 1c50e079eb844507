// Package manifest reads the objects of files, and what pods are made from.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Reader reads objects of the kinds that a scheme knows.
type Reader struct {
	scheme *runtime.Scheme
	strict runtime.Decoder
	visit  func(object runtime.Object, kind string) error
}

// NewReader returns a Reader that calls visit for each object. The object is nil if the
// scheme does not know its kind.
func NewReader(scheme *runtime.Scheme, visit func(object runtime.Object, kind string) error) *Reader {
	// A misspelt field would be ignored here and fail where it counts.
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	return &Reader{scheme: scheme, strict: strict, visit: visit}
}

// Read reads the objects of a file: YAML of any number of documents, or JSON; lists
// too. The error names the file and the document, counted from 1.
func (r *Reader) Read(name string, file io.Reader) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.document(document)
		}
		if err != nil {
			return fmt.Errorf("%s, document %d: %w", name, number, err)
		}
	}
}

func (r *Reader) document(document []byte) error {
	// Comments, or the nothing before a leading "---".
	if content, err := yaml.ToJSON(document); err == nil && bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil
	}
	object, kind, err := r.strict.Decode(document, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err):
		return r.visit(nil, kind.Kind)
	case err != nil:
		return err
	case !meta.IsListType(object):
		return r.visit(object, kind.Kind)
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return err
	}
	for i, item := range items {
		if err := r.item(item); err != nil {
			return fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return nil
}

// item visits an item of a list, which is decoded in a typed list only.
func (r *Reader) item(item runtime.Object) error {
	if raw, ok := item.(*runtime.Unknown); ok {
		return r.document(raw.Raw)
	}
	kinds, _, err := r.scheme.ObjectKinds(item)
	if err != nil {
		return err
	}
	return r.visit(item, kinds[0].Kind)
}

// Template returns the metadata of a workload and its template of pods. It reports false
// for an object of another kind. A workload without a template, which the API server
// refuses, has an empty one.
func Template(object runtime.Object) (*metav1.ObjectMeta, *corev1.PodTemplateSpec, bool) {
	switch o := object.(type) {
	case *corev1.PodTemplate:
		return &o.ObjectMeta, &o.Template, true
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return &o.ObjectMeta, &corev1.PodTemplateSpec{}, true
		}
		return &o.ObjectMeta, o.Spec.Template, true
	case *appsv1.Deployment:
		return &o.ObjectMeta, &o.Spec.Template, true
	case *appsv1.ReplicaSet:
		return &o.ObjectMeta, &o.Spec.Template, true
	case *appsv1.StatefulSet:
		return &o.ObjectMeta, &o.Spec.Template, true
	case *appsv1.DaemonSet:
		return &o.ObjectMeta, &o.Spec.Template, true
	case *batchv1.Job:
		return &o.ObjectMeta, &o.Spec.Template, true
	case *batchv1.CronJob:
		return &o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, true
	}
	return nil, nil, false
}
