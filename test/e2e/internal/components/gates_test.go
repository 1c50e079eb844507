package components

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"podenv.dev/featuregates"
)

const metrics = `# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="EnvFiles",stage="ALPHA"} 1
kubernetes_feature_enabled{name="EnvFilesToo",stage="ALPHA"} 0
kubernetes_feature_enabled{name="Graduated",stage=""} 1
other_metric{name="Elsewhere"} 1
`

func TestGate(t *testing.T) {
	for gate, want := range map[string]featuregates.GateState{
		"EnvFiles":    featuregates.GateOn,
		"EnvFilesToo": featuregates.GateOff,
		"Graduated":   featuregates.GateOn,
		"EnvFile":     featuregates.GateUnknown,
		"Elsewhere":   featuregates.GateUnknown,
	} {
		t.Run(gate, func(t *testing.T) {
			if got, err := gateIn([]byte(metrics), gate); got != want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestGateNeedsTheMetricsOfAComponent(t *testing.T) {
	for _, text := range []string{"", "other_metric 1\n"} {
		if _, err := gateIn([]byte(text), "EnvFiles"); err == nil || !strings.Contains(err.Error(), "no metric kubernetes_feature_enabled") {
			t.Errorf("%q: want an error that says so, got %v", text, err)
		}
	}
}

// A spec's outcome shows only in what runs it: the test binary runs itself with one spec.
func TestASpecFailsWithoutARequiredGateAndIsSkippedWithoutAnother(t *testing.T) {
	const env = "PODENV_TEST_REQUIRED_GATE"
	if required, isSpec := os.LookupEnv(env); isSpec {
		RequiredGates = []string{required}
		for gate, why := range map[string]string{"Off": "the gate Off is off in the API server", "On": ""} {
			answers.Store(fmt.Sprint(gate, true), why)
		}
		ginkgo.Describe("a spec", func() {
			ginkgo.It("needs both", func(ctx ginkgo.SpecContext) {
				RequireGate(ctx, "On")
				RequireGate(ctx, "Off")
			})
		})
		ginkgo.RunSpecs(t, "gates")
		return
	}
	for required, want := range map[string]string{
		"Off": "0 Passed | 1 Failed | 0 Pending | 0 Skipped",
		"On":  "0 Passed | 0 Failed | 0 Pending | 1 Skipped",
	} {
		command := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-ginkgo.no-color")
		command.Env = append(os.Environ(), env+"="+required)
		output, err := command.CombinedOutput()
		if failed := err != nil; !strings.Contains(string(output), want) || failed != (required == "Off") {
			t.Errorf("%s is required: %v, want %q:\n%s", required, err, want, output)
		}
	}
}

func TestARequiredGateThatIsOffIsOneErrorThatNamesTheComponent(t *testing.T) {
	off := strings.ReplaceAll(metrics, `"EnvFiles",stage="ALPHA"} 1`, `"EnvFiles",stage="ALPHA"} 0`)
	stock := strings.ReplaceAll(metrics, `"EnvFiles"`, `"Other"`)
	RequiredGates = []string{"EnvFiles", "Graduated"}
	defer func() { RequiredGates = nil }()
	for name, test := range map[string]struct{ apiServer, kubelet, want string }{
		"on everywhere":             {metrics, metrics, ""},
		"an API server that is off": {off, metrics, "the gate EnvFiles is off in the API server"},
		"a kubelet that is stock":   {metrics, stock, "the gate EnvFiles is unknown in the kubelet of node n"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes, err := json.Marshal(v1.NodeList{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			answers := map[string]string{"/api/v1/nodes": string(nodes), APIServerMetrics: test.apiServer, KubeletMetrics("n"): test.kubelet}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, answers[r.URL.Path]) //nolint:errcheck // the client sees it
			}))
			defer server.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			err = CheckRequiredGates(t.Context(), client)
			if (err == nil) != (test.want == "") {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if err != nil && (!strings.HasPrefix(err.Error(), test.want) || !strings.Contains(err.Error(), "`podenv node undo NODE`")) {
				t.Errorf("error %v, want %q and podenv node undo", err, test.want)
			}
		})
	}
}

func TestTakesPods(t *testing.T) {
	for name, test := range map[string]struct {
		spec v1.NodeSpec
		want bool
	}{
		"a plain node":           {v1.NodeSpec{}, true},
		"a cordoned node":        {v1.NodeSpec{Unschedulable: true}, false},
		"a control plane's node": {v1.NodeSpec{Taints: []v1.Taint{{Effect: v1.TaintEffectNoSchedule}}}, false},
		"a node better avoided":  {v1.NodeSpec{Taints: []v1.Taint{{Effect: v1.TaintEffectPreferNoSchedule}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := TakesPods(v1.Node{Spec: test.spec}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
