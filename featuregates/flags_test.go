package featuregates

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestCompare(t *testing.T) {
	have := map[string]bool{"On": true, "Off": false}
	tests := map[string]struct {
		want  map[string]bool
		error string
	}{
		"all as wanted":           {map[string]bool{"On": true, "Off": false}, ""},
		"one that should be on":   {map[string]bool{"On": true, "Off": true}, "kubelet runs with Off=false, want Off=true,On=true"},
		"one that should be off":  {map[string]bool{"On": false}, "On=true"},
		"one that nobody knows":   {map[string]bool{"Unknown": true}, "Unknown is unknown"},
		"one unknown wanted off":  {map[string]bool{"Unknown": false}, "Unknown is unknown"},
		"nothing wanted is right": {nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := Compare("kubelet", test.want, have)
			if (err == nil) != (test.error == "") || err != nil && !strings.Contains(err.Error(), test.error) {
				t.Errorf("error %v, want %q", err, test.error)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	tests := map[string]string{
		`err="failed to set feature gates from initial flags-based config: unrecognized feature gate: EnvFilez"`: "unrecognized feature gate: EnvFilez",
		`err="cannot set feature gate KubeletTracing to false, feature is locked to true"`:                       "cannot set feature gate KubeletTracing to false, feature is locked to true",
		`err="failed to load kubelet config file, path: /nonexistent"`:                                           "",
	}
	for says, want := range tests {
		if got := Refusal(errors.New(says)); got != want {
			t.Errorf("Refusal(%s) = %q, want %q", says, got, want)
		}
	}
	if got := Refusal(nil); got != "" {
		t.Errorf("Refusal(nil) = %q", got)
	}
}

func TestSetInCommandSetsExactlyTheGates(t *testing.T) {
	for name, test := range map[string]struct {
		command string
		gates   map[string]bool
		want    string
	}{
		"no gate was set":     {"kubelet --v=2", map[string]bool{"B": false, "A": true}, "kubelet --v=2 --feature-gates=A=true,B=false"},
		"others were set":     {"kubelet --feature-gates=AB=true,A=true --v=2", map[string]bool{"A": false}, "kubelet --v=2 --feature-gates=A=false"},
		"they were set twice": {"kubelet --feature-gates=A=true --feature-gates=B=true", map[string]bool{"A": true}, "kubelet --feature-gates=A=true"},
		"none is left":        {"kubelet --feature-gates=A=true", nil, "kubelet"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(SetInCommand("kubelet", strings.Fields(test.command), test.gates), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestSetInCommandKeepsTheSwitchesOfAGateTogether(t *testing.T) {
	const gate = "--feature-gates=PodPreset=true"
	for _, test := range []struct {
		name, command, want string
		on                  bool
	}{
		{"on", "kube-apiserver --enable-admission-plugins=NodeRestriction --v=2",
			"kube-apiserver --enable-admission-plugins=NodeRestriction,PodPreset --v=2 " + gate + " --runtime-config=settings.k8s.io/v1alpha1=true", true},
		{"on without flags", "kube-apiserver",
			"kube-apiserver " + gate + " --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=PodPreset", true},
		{"on twice", "kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset",
			"kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset " + gate, true},
		{"off", "kube-apiserver --runtime-config=settings.k8s.io/v1alpha1=true --enable-admission-plugins=NodeRestriction,PodPreset",
			"kube-apiserver --enable-admission-plugins=NodeRestriction", false},
		{"off, with another version", "kube-apiserver --runtime-config=api/beta=true,settings.k8s.io/v1alpha1=true",
			"kube-apiserver --runtime-config=api/beta=true", false},
		{"off already", "kube-apiserver --enable-admission-plugins=NodeRestriction", "kube-apiserver --enable-admission-plugins=NodeRestriction", false},
		{"in another component", "kube-scheduler", "kube-scheduler " + gate, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			words := strings.Fields(test.command)
			gates := map[string]bool{}
			if test.on {
				gates["PodPreset"] = true
			}
			if got := SetInCommand(words[0], words, gates); !slices.Equal(got, strings.Fields(test.want)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestFromCommandReadsEveryFlag(t *testing.T) {
	got, err := FromCommand([]string{"kubelet", "--feature-gates=A=true,B=false", "--v=2", "--feature-gates=C=true"})
	if err != nil || Flag(got) != "A=true,B=false,C=true" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := FromCommand([]string{"--feature-gates=A=perhaps"}); err == nil {
		t.Error("no error for a value that is not a boolean")
	}
}
