// Package engine provides a container engine that runs privileged containers, as kind's nodes
// are. The engine is Docker: the one that already runs, or one that this package installs and
// starts, with hack/podenv-oci-runtime as its runtime if the host cannot grant every capability.
//
//	serves? ── no ─► packages ─► start (systemd, or dockerd in its own session)
//	   │ yes                        │
//	   └──────────► privileged container? ─► Engine
package engine
