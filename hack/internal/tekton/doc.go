// Package tekton builds Tekton Pipelines from a tree and runs it on a cluster, without a
// container registry. Build compiles the programs and packs their images, Install applies the
// release's own manifests with those images and waits until the webhook serves.
package tekton
