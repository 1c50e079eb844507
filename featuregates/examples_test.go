package featuregates

import (
	"slices"
	"testing"
)

func TestExamplesHaveTheFormOfTheRelease(t *testing.T) {
	for release, want := range map[string][]string{
		"v1.33.13+podenv.25": {"story-1.yaml", "story-2.yaml", "podpreset-pod.yaml"},
		"v1.37.2+podenv.16":  {"story-1-v1.35.yaml", "story-2-v1.35.yaml", "podpreset-pod.yaml"},
	} {
		all, err := Examples(release, map[string]bool{"EnvFiles": true, "PodPreset": true})
		var got []string
		for _, e := range all {
			got = append(got, e.Pod)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q (%v), want %q", release, got, err, want)
		}
	}
	if none, err := Examples("v1.33", map[string]bool{"EnvFiles": false}); err != nil || len(none) != 0 {
		t.Errorf("with the gates off: %v, %v", none, err)
	}
	if _, err := Examples("newest", nil); err == nil {
		t.Error("no error for a release that is not a version")
	}
}
