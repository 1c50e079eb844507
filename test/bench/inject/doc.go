// Package inject injects the same into pods by a PodPreset, by the MutatingAdmissionPolicy that
// `kubectl podenv preset convert` writes of it, by a policy that is written for it, and by a webhook, on an
// API server without nodes.
package inject
