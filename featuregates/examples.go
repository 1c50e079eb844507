package featuregates

import v1 "k8s.io/api/core/v1"

// Example is a pod that shows a feature, from manifests that also work with kubectl apply.
type Example struct {
	// Gate is the feature's; Examples sets it.
	Gate string
	// Objects are files of test/manifests with what the pod needs.
	Objects []string
	// Pod is the file of test/manifests with the pod.
	Pod string
	// Sets are the variables that the pod's first container has because of the feature.
	Sets []string
	// From is where they come from, in words.
	From string
	// Ready reports whether the API server has made of the pod what the feature makes of it;
	// nil if that happens later, in the kubelet.
	Ready func(*v1.Pod) bool
}

// Examples returns the examples of the features of a release ("v1.33" or "v1.33.13") whose gates
// are on. It returns an error for a release that is not a version.
func Examples(release string, on map[string]bool) ([]Example, error) {
	states, err := In(release)
	var examples []Example
	for _, s := range states {
		if s.Examples == nil || !on[string(s.Name)] {
			continue
		}
		for _, e := range s.Examples(release) {
			e.Gate = string(s.Name)
			examples = append(examples, e)
		}
	}
	return examples, err
}

// userStories are those of KEP-3721, in the KEP's order, in the form that kubelets of a release
// read env files.
func userStories(release string) []Example {
	form := ""
	if quoted, _ := QuotesEnvFiles(release); quoted {
		form = "-v1.35"
	}
	return []Example{
		{Pod: "story-1" + form + ".yaml", Sets: []string{"CONFIG_VAR"}, From: "the env file"},
		{Pod: "story-2" + form + ".yaml", Sets: []string{"CONFIG_MAIN"}, From: "the env file"},
	}
}

// presetExample is the first example of the document "Pod Preset".
func presetExample(string) []Example {
	return []Example{{
		Objects: []string{"podpreset.yaml"}, Pod: "podpreset-pod.yaml", Sets: []string{"DB_PORT"}, From: "the PodPreset allow-database",
		// The admission plugin learns of presets by a watch.
		Ready: func(pod *v1.Pod) bool {
			return pod.Annotations["podpreset.admission.kubernetes.io/podpreset-allow-database"] != ""
		},
	}}
}
