package components

import (
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kubernetes/test/e2e/framework"

	"podenv.dev/featuregates"
)

// HasUpstreamAPI reports whether the API server is of a release in which Kubernetes itself has
// the API behind gate, so that upstream's validation decides, and not that of this branch.
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

// RequireUnlocked skips the running spec where no component can have gate off.
func RequireUnlocked(gate string) {
	ginkgo.GinkgoHelper()
	if gateOfThisRelease(gate).Spec.LockToDefault {
		ginkgo.Skip(fmt.Sprintf("the gate %s is locked in the release of the API server", gate))
	}
}

// QuotesEnvFiles reports whether kubelets of the release of the API server read env files of
// the form VAR='VALUE', and not VAR=VALUE.
func QuotesEnvFiles() bool {
	ginkgo.GinkgoHelper()
	quoted, err := featuregates.QuotesEnvFiles(serverVersion())
	framework.ExpectNoError(err)
	return quoted
}

// AtLeast reports whether the release of the API server is of minor ("v1.35") or a newer one.
func AtLeast(minor string) bool {
	ginkgo.GinkgoHelper()
	release, err := version.ParseGeneric(serverVersion())
	framework.ExpectNoError(err)
	return release.AtLeast(version.MustParseGeneric(minor))
}

// EnvFile returns text, lines of the form VAR=VALUE, in the form that kubelets of the release
// of the API server read. Lines without an equals sign and comments stay as they are.
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

// StateIn returns what a gate is in a patched release ("v1.33" or "v1.33.13"), and whether it
// has the gate.
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

// serverVersion is the release that the API server says that it is.
func serverVersion() string {
	ginkgo.GinkgoHelper()
	info, err := newClient().Discovery().ServerVersion()
	framework.ExpectNoError(err, "read the version of the API server")
	return info.GitVersion
}
