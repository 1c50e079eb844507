package node

import (
	"strings"
	"testing"

	"podenv.dev/hack/internal/cluster"
	"podenv.dev/hack/internal/testutil"
)

const (
	gateOn  = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1` + "\n"
	gateOff = `kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 0` + "\n"
)

const buildInfo = `kubernetes_build_info{build_date="2026-06-11T16:59:07Z",compiler="gc",git_version="v1.33.13+podenv.24",go_version="go1.26.8"} 1` + "\n"

func TestMetricsAreComparedWithWhatIsWanted(t *testing.T) {
	tests := map[string]struct {
		metrics string
		want    cluster.State
		says    string
	}{
		"the version and the gates wanted":   {buildInfo + gateOn, cluster.State{Version: "v1.33.13+podenv.24", Gates: map[string]bool{"EnvFiles": true}}, ""},
		"gates that nobody asked for":        {buildInfo + gateOn, cluster.State{Version: "v1.33.13+podenv.24"}, ""},
		"another version":                    {buildInfo + gateOn, cluster.State{Version: "v1.33.13"}, "v1.33.13+podenv.24, want v1.33.13"},
		"a gate that is off":                 {buildInfo + gateOff, cluster.State{Version: "v1.33.13+podenv.24", Gates: map[string]bool{"EnvFiles": true}}, "EnvFiles=false, want EnvFiles=true"},
		"a gate that it does not know":       {buildInfo + gateOn, cluster.State{Version: "v1.33.13+podenv.24", Gates: map[string]bool{"Other": true}}, "Other is unknown"},
		"metrics that do not tell the build": {gateOn, cluster.State{Version: "v1.33.13"}, "kubernetes_build_info"},
		"metrics that do not tell the gates": {buildInfo, cluster.State{Version: "v1.33.13"}, "kubernetes_feature_enabled"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := parseMetrics([]byte(test.metrics))
			if err == nil {
				err = r.check("kubelet", test.want)
			}
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want %q", err, test.says)
			}
		})
	}
}

// TestMetricsEndWithANewline, which parsers of the text format ask for: those that are read on a node, too.
func TestMetricsEndWithANewline(t *testing.T) {
	testutil.NewCommands(t).Script("docker", `case "$*" in "exec node "*) echo metric 1;; esac`)
	got, err := Metrics(t.Context(), someCluster(t), nil, "node", "kube-scheduler")
	if want := "metric 1\n"; err != nil || string(got) != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}
