package components

import (
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/featuregates"
)

// HasUpstreamAPI reports whether the release of the API server has the API behind gate from
// upstream. Then upstream's validation applies instead of this branch's.
func HasUpstreamAPI(gate string) bool {
	ginkgo.GinkgoHelper()
	return !gateOfThisRelease(gate).Carried
}

// RequireUpstreamAPI skips the running spec unless the API behind gate is upstream's.
func RequireUpstreamAPI(gate string) {
	ginkgo.GinkgoHelper()
	if !HasUpstreamAPI(gate) {
		ginkgo.Skip(fmt.Sprintf("the API of %s is this branch's in the release of the API server", gate))
	}
}

// RequireOwnAPI skips the running spec unless the API behind gate is this branch's.
func RequireOwnAPI(gate string) {
	ginkgo.GinkgoHelper()
	if HasUpstreamAPI(gate) {
		ginkgo.Skip(fmt.Sprintf("the API of %s is upstream's in the release of the API server", gate))
	}
}

// RequireUnlocked skips the running spec if gate is locked to its default.
func RequireUnlocked(gate string) {
	ginkgo.GinkgoHelper()
	if gateOfThisRelease(gate).Spec.LockToDefault {
		ginkgo.Skip(fmt.Sprintf("the gate %s is locked in the release of the API server", gate))
	}
}

// QuotesEnvFiles reports whether kubelets of the API server's release read env files with
// VAR='VALUE' instead of VAR=VALUE.
func QuotesEnvFiles() bool {
	ginkgo.GinkgoHelper()
	quoted, err := featuregates.QuotesEnvFiles(serverVersion())
	framework.ExpectNoError(err)
	return quoted
}

// AtLeast reports whether the API server is of minor ("v1.35") or newer.
func AtLeast(minor string) bool {
	ginkgo.GinkgoHelper()
	release, err := version.ParseGeneric(serverVersion())
	framework.ExpectNoError(err)
	return release.AtLeast(version.MustParseGeneric(minor))
}

// EnvFile converts text, lines VAR=VALUE, to the syntax that kubelets of the API server's
// release read. Comments and lines without an equals sign stay as they are.
func EnvFile(text string) string {
	ginkgo.GinkgoHelper()
	if QuotesEnvFiles() {
		return quoteValues(text)
	}
	return text
}

// quoteValues puts the value of each line of the form VAR=VALUE into single quotes.
func quoteValues(text string) string {
	var quoted strings.Builder
	for line := range strings.Lines(text) {
		declaration := strings.TrimSuffix(line, "\n")
		if name, value, ok := strings.Cut(declaration, "="); ok && !strings.HasPrefix(name, "#") {
			declaration = name + "='" + value + "'"
		}
		quoted.WriteString(declaration)
		if strings.HasSuffix(line, "\n") {
			quoted.WriteByte('\n')
		}
	}
	return quoted.String()
}

func gateOfThisRelease(gate string) featuregates.State {
	ginkgo.GinkgoHelper()
	release := serverVersion()
	state, known := StateIn(release, gate)
	if !known {
		framework.Failf("featuregates has no gate %s for %s", gate, release)
	}
	return state
}

// StateIn returns the state of a gate in a patched release ("v1.33" or "v1.33.13"), and whether
// the release has the gate.
func StateIn(release, gate string) (featuregates.State, bool) {
	states, err := featuregates.In(release)
	if err == nil {
		for _, state := range states {
			if string(state.Name) == gate {
				return state, true
			}
		}
	}
	return featuregates.State{}, false
}

// serverVersion is the version that the API server reports.
func serverVersion() string {
	ginkgo.GinkgoHelper()
	info, err := newClient().Discovery().ServerVersion()
	framework.ExpectNoError(err, "read the version of the API server")
	return info.GitVersion
}
