package preset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"

	"podenv.dev/staging/src/k8s.io/component-helpers/settings/inject"
)

// Manifest is what was found in files.
type Manifest struct {
	pods    []workload
	presets []*PodPreset
	objects []runtime.Object // ConfigMaps and Secrets
	files   []string
}

// workload is a pod, or the template of pods.
type workload struct {
	kind string
	pod  *corev1.Pod
}

var known = newScheme()

// strict refuses a field that the API does not have, as the API server warns of it.
var strict = json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{Yaml: true, Strict: true})

// Read adds the pods, workloads, PodPresets, ConfigMaps and Secrets of a file: YAML of any
// number of documents, lists too, or JSON. Objects of other kinds are passed over. The
// error names the file and the document, counted from 1.
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
	if content, err := yaml.ToJSON(document); err == nil && bytes.Equal(bytes.TrimSpace(content), []byte("null")) {
		return nil // comments only
	}
	object, kind, err := strict.Decode(document, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	from := func(of metav1.ObjectMeta, template *corev1.PodTemplateSpec) error {
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		// A controller makes the name of the pod.
		pod.GenerateName, pod.Namespace = of.Name+"-", of.Namespace
		m.pods = append(m.pods, workload{kind.Kind, pod})
		return nil
	}
	switch o := object.(type) {
	case *corev1.List:
		for i, item := range o.Items {
			if err := m.add(item.Raw); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
	case *PodPreset:
		return m.addPreset(o)
	case *corev1.ConfigMap, *corev1.Secret:
		m.objects = append(m.objects, o)
	case *corev1.Pod:
		m.pods = append(m.pods, workload{kind.Kind, o})
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			return from(o.ObjectMeta, o.Spec.Template)
		}
	case *appsv1.Deployment:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.ReplicaSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.StatefulSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *appsv1.DaemonSet:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *batchv1.Job:
		return from(o.ObjectMeta, &o.Spec.Template)
	case *batchv1.CronJob:
		return from(o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template)
	}
	return nil
}

// addPreset refuses what the API server would: the rest of its validation needs its gates.
func (m *Manifest) addPreset(p *PodPreset) error {
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.Selector)
	switch {
	case err != nil:
		return fmt.Errorf("PodPreset %s: spec.selector: %w", p.Name, err)
	case selector.Empty():
		return fmt.Errorf("PodPreset %s: spec.selector must have at least one label or expression", p.Name)
	case p.Name == "" || len(p.Name) > inject.MaxNameLength:
		return fmt.Errorf("PodPreset %q: metadata.name must have 1 to %d bytes", p.Name, inject.MaxNameLength)
	}
	m.presets = append(m.presets, p)
	return nil
}
