// Package ociruntime is an OCI runtime for hosts whose capability bounding set is
// short, as in many nested CI sandboxes. A container engine there asks runc for
// capabilities that the kernel does not let it grant, and runc gives up. This
// runtime takes what cannot be granted out of the request and then becomes runc.
//
//	dockerd ─► containerd-shim ─► podenv-oci-runtime ─► runc
//	                              (config.json, process.json)
package ociruntime
