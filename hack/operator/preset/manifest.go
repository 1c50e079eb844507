package preset

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"podenv.dev/hack/operator/manifest"
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

// Read adds the pods, workloads, PodPresets, ConfigMaps and Secrets of a file: YAML of any
// number of documents, lists too, or JSON. Objects of other kinds are passed over. The
// error names the file and the document, counted from 1.
func (m *Manifest) Read(name string, file io.Reader) error {
	m.files = append(m.files, name)
	return manifest.NewReader(known, m.add).Read(name, file)
}

func (m *Manifest) add(object runtime.Object, kind string) error {
	switch o := object.(type) {
	case *PodPreset:
		return m.addPreset(o)
	case *corev1.ConfigMap, *corev1.Secret:
		m.objects = append(m.objects, o)
	case *corev1.Pod:
		m.pods = append(m.pods, workload{kind, o})
	default:
		if of, pod, ok := manifest.Pod(object); ok {
			// A controller makes the name of the pod.
			pod.GenerateName, pod.Namespace = of.Name+"-", of.Namespace
			m.pods = append(m.pods, workload{kind, pod})
		}
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
