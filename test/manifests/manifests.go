// Package manifests holds the pods that a person can kubectl apply, for the suites
// and the commands that run the very same files.
package manifests

import (
	"embed"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Expansions are the manifests of the two example pods of the document "Variable
// expansion", in the document's order.
var Expansions = []string{"expansion-1.yaml", "expansion-2.yaml"}

// Pod returns the pod in the file called name. A field that the v1 API does not
// know is an error, so that a slip of the pen cannot go unseen.
func Pod(name string) (*v1.Pod, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", name, err)
	}
	if pod.APIVersion != "v1" || pod.Kind != "Pod" {
		return nil, fmt.Errorf("manifest %s is a %s %s, want a v1 Pod", name, pod.APIVersion, pod.Kind)
	}
	return pod, nil
}
