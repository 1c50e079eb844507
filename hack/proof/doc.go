// Package proof holds the proofs of the project, as Go tests: each check in the table of
// docs/testing.md is a subtest of TestCompiling, TestClusters or TestOwnClusters, which run in
// parallel. They install packages, build Kubernetes and create clusters, so they run only with
// -podenv.series. `podenv test` runs them, and gotestsum counts the tests and writes the JUnit
// report.
//
// check_test.go adds what package testing lacks: a lane is a row of checks that share fixtures, such
// as a cluster, which the first of them makes; a check prints its progress, takes the results of
// other programs' tests as its own, and lists what failed. It extends testing.T, so it is a test file.
//
// The package is below hack because only packages there can import hack/internal.
package proof

// Groups are what podenv test runs. --only chooses from them, and from ByName.
var Groups = []string{"lint", "unit", "source", "upstream", "image", "e2e", "upgrade"}

// ByName are the groups that take long, and run only by name.
var ByName = []string{"patches", "atlas"}
