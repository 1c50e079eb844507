package components

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-base/featuregate"
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

// AtLeast reports whether the API server is of minor ("v1.35") or newer.
func AtLeast(minor string) bool {
	ginkgo.GinkgoHelper()
	release, err := version.ParseGeneric(ServerVersion())
	framework.ExpectNoError(err)
	return release.AtLeast(version.MustParseGeneric(minor))
}

func gateOfThisRelease(gate string) featuregates.State {
	ginkgo.GinkgoHelper()
	release := ServerVersion()
	state, known := featuregates.StateIn(release, featuregate.Feature(gate))
	if !known {
		framework.Failf("featuregates has no gate %s for %s", gate, release)
	}
	return state
}

// ServerVersion is the version that the API server reports.
func ServerVersion() string {
	ginkgo.GinkgoHelper()
	info, err := newClient().Discovery().ServerVersion()
	framework.ExpectNoError(err, "read the version of the API server")
	return info.GitVersion
}
