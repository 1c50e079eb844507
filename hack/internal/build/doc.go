// Package build compiles the Kubernetes components of a source tree and packs them:
// binaries, container images, and the server tarball of a Kubernetes release.
//
//	source.Tree -> Binaries -> Images -> ServerTarball
//
// Each result is kept under _output/build/<tree> and keyed by all that went into it,
// so that a second call with nothing changed costs a look and no more.
package build
