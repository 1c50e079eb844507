// Package source puts a series' tree together: the pinned release from the Go module
// cache, then our new files, the patches and the generators' output, laid out as
// kubernetes/kubernetes is.
//
// The tree is a git repository with one commit for each of these, so that a person
// edits it with git and WritePatches takes the edits back. What a person has done
// there is never overwritten.
package source
