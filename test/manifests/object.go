package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Object returns the object in the file called name, of a kind that the libraries that this module
// is built with may not have.
func Object(name string) (*unstructured.Unstructured, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &object.Object); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	return object, nil
}
