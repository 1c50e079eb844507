// Package build compiles the Kubernetes components of a source tree and packs them:
// binaries, container images, and the server tarball of a Kubernetes release.
//
//	source.Tree -> Binaries -> Images -> ServerTarball
//
// Each result is cached under _output/build/<tree>, keyed by all of its inputs. If nothing
// changed, a second call only checks the key.
package build
