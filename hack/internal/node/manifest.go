package node

import (
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"podenv.dev/hack/internal/gates"
)

// featureGates is how kubeadm's manifests set feature gates.
const featureGates = "--feature-gates="

// podEdit is what is edited in the manifest of a static pod.
type podEdit struct {
	// uid is spelled out. The kubelet makes up the UID from the manifest; were it another
	// one, the kubelet would take the old pod down in full and look for the new one 10 to
	// 15 seconds later. Under the same UID it only restarts the container.
	uid   string
	image string          // empty for the one it has
	gates map[string]bool // nil for those that are set
}

// editPod returns the manifest of a static pod edited as edit says for one container,
// and all else as it was.
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
		words := setGateFlag(c["command"], edit.gates)
		if container == "kube-apiserver" {
			words = setPodPreset(words, edit.gates[podPreset])
		}
		c["command"] = words
	}
	out, err := yaml.Marshal(pod)
	return string(out), err
}

// parsePod returns a pod and one of its containers, which is a part of it.
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

// podImage is the image of a container in the manifest of a static pod.
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

// podUID is the UID that the manifest of a static pod spells out, or empty.
func podUID(manifest string) string {
	var pod struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	if yaml.Unmarshal([]byte(manifest), &pod) != nil {
		return ""
	}
	return pod.Metadata.UID
}

// podGates returns the feature gates that the command of a container sets.
func podGates(manifest, container string) (map[string]bool, error) {
	_, c, err := parsePod(manifest, container)
	if err != nil {
		return nil, err
	}
	set := map[string]bool{}
	words, _ := c["command"].([]any)
	for _, word := range words {
		flag, _ := word.(string)
		list, ok := strings.CutPrefix(flag, featureGates)
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(list, ",") {
			name, value, _ := strings.Cut(pair, "=")
			on, err := strconv.ParseBool(value)
			if err != nil {
				return nil, fmt.Errorf("%s has the flag %s", container, flag)
			}
			set[name] = on
		}
	}
	return set, nil
}

// setGateFlag returns the words of a command with these gates set and no others.
func setGateFlag(command any, set map[string]bool) []any {
	words, _ := command.([]any)
	var out []any
	for _, word := range words {
		if flag, _ := word.(string); !strings.HasPrefix(flag, featureGates) {
			out = append(out, word)
		}
	}
	if len(set) == 0 {
		return out
	}
	return append(out, featureGates+gates.Flag(set))
}
