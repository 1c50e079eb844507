package cluster

import (
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"podenv.dev/featuregates"
)

const podPreset = string(featuregates.PodPreset)

// enablePodPreset turns on the version of the API and the admission plugin, which the API
// server has beside the gate, in a cluster that is to be made. A list of plugins takes the
// place of kubeadm's own, which is NodeRestriction.
func enablePodPreset(k *v1alpha4.Cluster) {
	k.RuntimeConfig["settings.k8s.io/v1alpha1"] = "true"
	k.KubeadmConfigPatches = append(k.KubeadmConfigPatches,
		"kind: ClusterConfiguration\napiServer:\n  extraArgs:\n    enable-admission-plugins: NodeRestriction,"+podPreset+"\n")
}
