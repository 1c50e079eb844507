// Package debian has what podenv takes from Debian: packages that it installs on this
// host, and one root file system of packages at pinned versions, which images are made
// from. apt checks what it downloads against the archive's signatures.
//
//	packages-<arch>.lock ─► RootFS ─┬─► the node image
//	                                └─► Files ─► kube-proxy's image, the test images
package debian
