// Package proof holds the proofs of the project, as Go tests: each check of the README's
// table is a subtest of TestCompiling, TestClusters or TestOwnClusters, which run beside
// one another. They install packages, build Kubernetes and create clusters, so they run
// only where -podenv.series is given. `podenv test` does that, and has gotestsum count
// the tests and write the JUnit report.
//
// The package is below hack because Go lets nothing else use hack/internal.
package proof

// Groups are what --only of podenv test chooses from.
var Groups = []string{"lint", "unit", "source", "upstream", "image", "e2e", "upgrade"}
