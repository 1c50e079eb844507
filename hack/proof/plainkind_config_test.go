package proof

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"podenv.dev/featuregates"
	"podenv.dev/hack/internal/poll"
)

// gatesOn reads the gates that docs/kind.yaml sets from the components that act on them.
func (k *kindProof) gatesOn() (string, error) {
	states, err := featuregates.In(steps.Series.Name)
	if err != nil {
		return "", err
	}
	var saw strings.Builder
	for component, path := range map[string]string{
		"kube-apiserver": "/metrics",
		"kubelet":        "/api/v1/nodes/" + k.node("worker") + "/proxy/metrics",
	} {
		out, err := k.kubectl("get", "--raw="+path).Output()
		if err != nil {
			return "", err
		}
		on, err := featuregates.FromMetrics(strings.NewReader(out))
		if err != nil {
			return "", fmt.Errorf("%s: %w", component, err)
		}
		for _, state := range states {
			if !slices.Contains(state.Components, component) {
				continue
			}
			fmt.Fprintf(&saw, "%s %s=%t\n", component, state.Name, on[string(state.Name)].Enabled)
			if !on[string(state.Name)].Enabled {
				return saw.String(), fmt.Errorf("%s runs without the gate %s", component, state.Name)
			}
		}
	}
	return saw.String(), nil
}

const (
	presetOfKind = `apiVersion: settings.k8s.io/v1alpha1
kind: PodPreset
metadata:
  name: kind-yaml
spec:
  selector:
    matchLabels:
      preset: kind-yaml
  env:
  - name: FROM_PRESET
    value: injected
`
	// podOfKind is a pod that the preset selects.
	podOfKind = `apiVersion: v1
kind: Pod
metadata:
  name: selected
  labels:
    preset: kind-yaml
spec:
  containers:
  - name: app
    image: podenv.dev/busybox:1
`
)

// injects has the API server admit a pod without storing it, until the preset is in its cache.
func (k *kindProof) injects() (saw string, err error) {
	if err := k.kubectl("apply", "--filename=-").Stdin(strings.NewReader(presetOfKind)).Run(); err != nil {
		return "", err
	}
	err = poll.Until(k.ctx, requestTimeout, func(context.Context) error {
		saw, err = k.kubectl("create", "--dry-run=server", "--output=jsonpath={.spec.containers[0].env}", "--filename=-").
			Stdin(strings.NewReader(podOfKind)).Output()
		if err == nil && !strings.Contains(saw, "FROM_PRESET") {
			err = fmt.Errorf("the pod has the variables %q, without the preset's", saw)
		}
		return err
	})
	return saw, err
}
