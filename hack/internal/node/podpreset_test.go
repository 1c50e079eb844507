package node

import (
	"slices"
	"strings"
	"testing"
)

func TestSetPodPreset(t *testing.T) {
	tests := []struct {
		name, command, want string
		on                  bool
	}{
		{"on", "kube-apiserver --enable-admission-plugins=NodeRestriction --v=2",
			"kube-apiserver --enable-admission-plugins=NodeRestriction,PodPreset --v=2 --runtime-config=settings.k8s.io/v1alpha1=true", true},
		{"on without flags", "kube-apiserver",
			"kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=PodPreset", true},
		{"on twice", "kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset",
			"kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset", true},
		{"off", "kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset",
			"kube-apiserver --enable-admission-plugins=NodeRestriction", false},
		{"off, with another version", "kube-apiserver --runtime-config=api/beta=true,settings.k8s.io/v1alpha1=true",
			"kube-apiserver --runtime-config=api/beta=true", false},
		{"off already", "kube-apiserver --enable-admission-plugins=NodeRestriction", "kube-apiserver --enable-admission-plugins=NodeRestriction", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := setPodPreset(strings.Fields(tt.command), tt.on)
			if want := strings.Fields(tt.want); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestEditPodKeepsSwitchesOfPodPresetTogether(t *testing.T) {
	const manifest = "metadata: {}\nspec: {containers: [{name: kube-apiserver, command: [kube-apiserver, --enable-admission-plugins=NodeRestriction]}]}\n"
	on, err := editPod(manifest, "kube-apiserver", podEdit{uid: "1", gates: map[string]bool{"PodPreset": true}})
	if err != nil || !strings.Contains(on, "NodeRestriction,PodPreset") || !strings.Contains(on, "settings.k8s.io/v1alpha1=true") {
		t.Fatalf("with the gate: %v\n%s", err, on)
	}
	off, err := editPod(on, "kube-apiserver", podEdit{uid: "1", gates: map[string]bool{}})
	if err != nil || strings.Contains(off, "PodPreset") || strings.Contains(off, "settings.k8s.io") {
		t.Errorf("without the gate: %v\n%s", err, off)
	}
}
