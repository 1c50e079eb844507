// Package nodeimage builds a kind node image without any container registry: a
// Debian root file system, the files of kind's own base image, the binaries of a
// release, and every container image that its control plane runs.
//
//	debian.RootFS ──────────────────┐
//	module sigs.k8s.io/kind ────────┤
//	containerd and runc ────────────┼─► Base ──┐
//	files/ ─────────────────────────┘          ├─► Build ─► podenv/node:<tag>-<hash>
//	hack/images/* ─────► SupportImages ────────┤
//	build.Result (binaries, images) ───────────┘
package nodeimage
