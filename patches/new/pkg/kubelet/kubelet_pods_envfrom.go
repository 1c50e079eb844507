package kubelet

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

// envFromData returns the data of a ConfigMap or Secret that become variables
// of a container through envFrom: all of them, or with the gate
// RelaxedEnvironmentVariableValidation off, those whose key with the prefix is a
// name that strict validation accepts. An event names the others, as kubelets did
// before the gate; kind is "configMap" or "secret".
//
// data belong to the manager's cache and are never changed.
func envFromData[V string | []byte](kl *Kubelet, pod *v1.Pod, kind, name, prefix string, data map[string]V) map[string]V {
	if utilfeature.DefaultFeatureGate.Enabled(features.RelaxedEnvironmentVariableValidation) {
		return data
	}

	var invalid []string
	for key := range data {
		if len(utilvalidation.IsEnvVarName(prefix+key)) != 0 {
			invalid = append(invalid, prefix+key)
		}
	}
	if len(invalid) == 0 {
		return data
	}

	slices.Sort(invalid)
	kl.recorder.Eventf(pod, v1.EventTypeWarning, "InvalidEnvironmentVariableNames", "Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.", strings.Join(invalid, ", "), kind, pod.Namespace, name)

	valid := maps.Clone(data)
	for _, key := range invalid {
		delete(valid, strings.TrimPrefix(key, prefix))
	}
	return valid
}
