package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const kubeletConfiguration = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupRoot: /kubelet
futureField: {kept: [1, "2"]}
featureGates:
  EnvFiles: true
  Other: false
`

func TestSetKubeletGatesChangesTheGatesAndNothingElse(t *testing.T) {
	const others = "EnvFiles: true\n  Other: false"
	for name, test := range map[string]struct {
		gates map[string]bool
		want  string
	}{
		"other gates": {map[string]bool{"EnvFiles": false}, strings.Replace(kubeletConfiguration, others, "EnvFiles: false", 1)},
		"no gates":    {map[string]bool{}, strings.Replace(kubeletConfiguration, "featureGates:\n  "+others, "", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := setKubeletGates(kubeletConfiguration, test.gates)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decoded(t, test.want), decoded(t, got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if set, err := kubeletGates(got); err != nil || len(set) != len(test.gates) {
				t.Errorf("the gates that it sets are %v, %v", set, err)
			}
		})
	}
}

func TestSetKubeletGatesRefusesWhatIsNoKubeletConfiguration(t *testing.T) {
	for _, config := range []string{"", "{", "kind: Pod"} {
		if got, err := setKubeletGates(config, nil); err == nil {
			t.Errorf("%q gave %q", config, got)
		}
	}
}

func TestFlagsForLeavesOutThePauseImageWhereTheKubeletRefusesIt(t *testing.T) {
	const (
		flags   = `KUBELET_KUBEADM_ARGS="--pod-infra-container-image=registry.k8s.io/pause:3.10 --node-ip=172.18.0.2 --node-labels="`
		without = `KUBELET_KUBEADM_ARGS=" --node-ip=172.18.0.2 --node-labels="`
	)
	for version, want := range map[string]string{
		"v1.34.10":          flags,
		"v1.35.8":           without,
		"v1.35.8+podenv.16": without,
		"v1.37.0-alpha.1":   without,
		"":                  flags, // a kubelet that is down has no version
	} {
		if got := flagsFor(version, flags); got != want {
			t.Errorf("%s: %s, want %s", version, got, want)
		}
		if got := flagsFor(version, without); got != without {
			t.Errorf("%s: %s became %s", version, without, got)
		}
	}
}

func TestAChangeOfTheBuildAlsoReplacesTheFlags(t *testing.T) {
	for binary, want := range map[string][]string{"": {}, "file": {binDir + "kubelet", kubeletFlags}} {
		if diff := cmp.Diff(want, (&kubelet{target: &target{name: "kubelet"}, change: change{binary: binary}}).changed()); diff != "" {
			t.Errorf("the build changes to %q (-want +got):\n%s", binary, diff)
		}
	}
}
