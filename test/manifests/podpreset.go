package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// PresetPod is the manifest of the pod that PodPreset changes.
const PresetPod = "podpreset-pod.yaml"

// PodPreset is the preset of the first example of the document "Pod Preset". The libraries
// that this module is built with do not have its type.
func PodPreset() (*unstructured.Unstructured, error) {
	const name = "podpreset.yaml"
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	preset := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &preset.Object); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	return preset, nil
}
