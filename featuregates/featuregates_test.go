package featuregates

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

func TestInGivesStageAndDefaultOfTheMinor(t *testing.T) {
	type row struct {
		Name    featuregate.Feature
		Stage   string
		Default bool
		Carried bool
	}
	for minor, want := range map[string][]row{
		"v1.28": nil,
		"v1.29": {{EnvFiles, "ALPHA", false, true}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "ALPHA", false, true}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.31": {{EnvFiles, "ALPHA", false, true}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "ALPHA", false, false}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.33": {{EnvFiles, "ALPHA", false, true}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "BETA", true, false}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.35": {{EnvFiles, "BETA", true, false}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "", true, false}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.36": {{EnvFiles, "BETA", true, false}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "", true, false}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.37": {{EnvFiles, "BETA", true, false}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "", true, false}, {VariableExpansionEvents, "ALPHA", false, true}},
		"v1.34": {{EnvFiles, "ALPHA", false, false}, {PodPreset, "ALPHA", false, true}, {RelaxedEnvironmentVariableValidation, "", true, false}, {VariableExpansionEvents, "ALPHA", false, true}},
	} {
		t.Run(minor, func(t *testing.T) {
			states, err := In(minor)
			if err != nil {
				t.Fatal(err)
			}
			var got []row
			for _, s := range states {
				got = append(got, row{s.Name, string(s.Spec.PreRelease), s.Spec.Default, s.Carried})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("gates of %s (-want +got):\n%s", minor, diff)
			}
		})
	}
}

func TestInRefusesWhatIsNotAVersion(t *testing.T) {
	if _, err := In("main"); err == nil {
		t.Error("In(main) gave no error")
	}
}

func TestEnabledTurnsEveryGateOn(t *testing.T) {
	on, err := Enabled("v1.33")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"EnvFiles": true, "PodPreset": true, "RelaxedEnvironmentVariableValidation": true, "VariableExpansionEvents": true}
	if diff := cmp.Diff(want, on); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStockLeavesOutTheGatesOfTheBranch(t *testing.T) {
	for minor, want := range map[string]map[string]bool{
		"v1.29": {},
		"v1.33": {"RelaxedEnvironmentVariableValidation": true},
		"v1.34": {"RelaxedEnvironmentVariableValidation": true, "EnvFiles": true},
	} {
		on, err := EnabledInStock(minor)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, on); diff != "" {
			t.Errorf("%s: -want +got:\n%s", minor, diff)
		}
	}
	if _, err := EnabledInStock("newest"); err == nil {
		t.Error("no error for a minor that is not a version")
	}
}

func TestQuotesEnvFiles(t *testing.T) {
	for release, want := range map[string]bool{
		"v1.29": false, "v1.33.13+podenv.25.dirty": false, "v1.34.10": false, "v1.35.0": true, "v1.37": true, "v1.37.1+podenv.16": true,
	} {
		if got, err := QuotesEnvFiles(release); err != nil || got != want {
			t.Errorf("%s: %t (%v), want %t", release, got, err, want)
		}
	}
	if _, err := QuotesEnvFiles("newest"); err == nil {
		t.Error("no error for a release that is not a version")
	}
}

func TestStateIn(t *testing.T) {
	for _, test := range []struct {
		release, gate  string
		own, locked    bool
		wantNoSuchGate bool
	}{
		{release: "v1.29.15+podenv.29", gate: "EnvFiles", own: true},
		{release: "v1.33.13+podenv.25.dirty", gate: "EnvFiles", own: true},
		{release: "v1.34.10+podenv.15", gate: "EnvFiles"},
		{release: "v1.34.10", gate: "EnvFiles"},
		{release: "v1.29.15+podenv.29", gate: "RelaxedEnvironmentVariableValidation", own: true},
		{release: "v1.33.13", gate: "RelaxedEnvironmentVariableValidation"},
		{release: "v1.34.10", gate: "RelaxedEnvironmentVariableValidation", locked: true},
		{release: "v1.34.10", gate: "VariableExpansionEvents", own: true},
		{release: "v1.28.0", gate: "EnvFiles", wantNoSuchGate: true},
		{release: "v1.34.10", gate: "NoSuchGate", wantNoSuchGate: true},
	} {
		t.Run(test.release+" "+test.gate, func(t *testing.T) {
			state, known := StateIn(test.release, featuregate.Feature(test.gate))
			if known == test.wantNoSuchGate {
				t.Fatalf("known: %t", known)
			}
			if state.Carried != test.own || state.Spec.LockToDefault != test.locked {
				t.Errorf("own %t, locked %t: want %t, %t", state.Carried, state.Spec.LockToDefault, test.own, test.locked)
			}
		})
	}
}

// The rows from the minor in which Kubernetes has a gate on are Kubernetes' own.
func TestUpstreamRowsAgreeWithTheNewestKubernetes(t *testing.T) {
	known := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()
	for name, upstream := range map[featuregate.Feature]featuregate.Feature{
		EnvFiles:                             features.EnvFiles,
		RelaxedEnvironmentVariableValidation: features.RelaxedEnvironmentVariableValidation,
	} {
		for _, want := range known[upstream] {
			got, ok := inForce(declared[name].Specs, want.Version)
			if !ok || got.PreRelease != want.PreRelease || got.Default != want.Default {
				t.Errorf("%s in %s: have %q default=%t, Kubernetes has %q default=%t",
					name, want.Version, got.PreRelease, got.Default, want.PreRelease, want.Default)
			}
		}
	}
}

// A gate that Kubernetes has by now is no longer only the branch's.
func TestGatesOfTheBranchAloneAreUnknownToTheNewestKubernetes(t *testing.T) {
	known := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()
	for name, gate := range declared {
		if _, ok := known[name]; ok && gate.Upstream == nil {
			t.Errorf("Kubernetes has the gate %s: say since when", name)
		}
	}
}
