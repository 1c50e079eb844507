package cluster

import "sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

// ValidatingAdmissionPolicy is a gate of Kubernetes v1.29, beta and off by default. A cluster
// that has it on also serves the API, whose version v1beta1 has a switch of its own.
const ValidatingAdmissionPolicy = "ValidatingAdmissionPolicy"

// serve turns on a version of an API group that is off by default.
func serve(k *v1alpha4.Cluster, groupVersion string) {
	if k.RuntimeConfig == nil {
		k.RuntimeConfig = make(map[string]string)
	}
	k.RuntimeConfig[groupVersion] = "true"
}
