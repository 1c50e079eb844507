package node

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"podenv.dev/featuregates"
)

// podEdit is an edit of the manifest of a static pod.
type podEdit struct {
	// uid is written into the manifest. By default the kubelet computes the UID from the
	// manifest. Under another UID it would tear the old pod down in full and look for the new
	// one 10 to 15 seconds later; under the same UID it only restarts the container.
	uid   string
	image string          // empty to keep the image
	gates map[string]bool // nil to keep the gates
}

// editPod applies edit to a container of a static pod's manifest, and keeps everything else.
func editPod(manifest, container string, edit podEdit) (string, error) {
	pod, c, err := parsePod(manifest, container)
	if err != nil {
		return "", err
	}
	metadata, ok := pod["metadata"].(map[string]any)
	if !ok || edit.uid == "" {
		return "", fmt.Errorf("the pod has no metadata, or no UID is known for it")
	}
	metadata["uid"] = edit.uid
	if edit.image != "" {
		c["image"] = edit.image
	}
	if edit.gates != nil {
		words, _, err := unstructured.NestedStringSlice(c, "command")
		if err != nil {
			return "", err
		}
		c["command"] = featuregates.SetInCommand(container, words, edit.gates)
	}
	out, err := yaml.Marshal(pod)
	return string(out), err
}

// parsePod returns a pod and one of its containers: a change of the container changes the pod.
func parsePod(manifest, container string) (pod, c map[string]any, err error) {
	if err := yaml.Unmarshal([]byte(manifest), &pod); err != nil {
		return nil, nil, err
	}
	spec, _ := pod["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	for _, one := range containers {
		if c, ok := one.(map[string]any); ok && c["name"] == container {
			return pod, c, nil
		}
	}
	return nil, nil, fmt.Errorf("the pod has no container %s", container)
}

func podImage(manifest, container string) (string, error) {
	_, c, err := parsePod(manifest, container)
	if err != nil {
		return "", err
	}
	image, _ := c["image"].(string)
	if image == "" {
		return "", fmt.Errorf("container %s has no image", container)
	}
	return image, nil
}

// podUID returns the UID in the manifest of a static pod, or "".
func podUID(manifest string) string {
	var pod metav1.PartialObjectMetadata
	if yaml.Unmarshal([]byte(manifest), &pod) != nil {
		return ""
	}
	return string(pod.UID)
}

func podGates(manifest, container string) (map[string]bool, error) {
	_, c, err := parsePod(manifest, container)
	if err != nil {
		return nil, err
	}
	words, _, err := unstructured.NestedStringSlice(c, "command")
	if err != nil {
		return nil, err
	}
	return featuregates.FromCommand(words)
}
