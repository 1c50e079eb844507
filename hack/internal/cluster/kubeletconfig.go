package cluster

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// kubeletGates returns the feature gates that a KubeletConfiguration sets.
func kubeletGates(config string) (map[string]bool, error) {
	var has struct {
		FeatureGates map[string]bool `json:"featureGates"`
	}
	if err := yaml.Unmarshal([]byte(config), &has); err != nil {
		return nil, err
	}
	return has.FeatureGates, nil
}

// setKubeletGates returns the KubeletConfiguration with these feature gates set and no
// others, and all else as it was. It knows no version's fields.
func setKubeletGates(config string, gates map[string]bool) (string, error) {
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(config), &fields); err != nil {
		return "", err
	}
	if fields["kind"] != "KubeletConfiguration" {
		return "", fmt.Errorf("it is a %v, not a KubeletConfiguration", fields["kind"])
	}
	delete(fields, "featureGates")
	if len(gates) > 0 {
		fields["featureGates"] = gates
	}
	out, err := yaml.Marshal(fields)
	return string(out), err
}
