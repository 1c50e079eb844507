// Package debian installs Debian packages on this host, and builds one root file system of
// packages at pinned versions, from which images are made. apt verifies downloads with the
// archive's signatures.
//
//	packages-<arch>.lock ─► RootFS ─┬─► the node image
//	                                └─► Files ─► kube-proxy's image, the test images
package debian
