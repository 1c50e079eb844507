// Package debian fetches Debian packages at pinned versions and reads the files in
// them, without installing anything. apt checks what it downloads against the
// archive's signatures.
package debian
